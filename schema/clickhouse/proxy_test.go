//go:build engines

package clickhouse_test

import (
	"net"
	"strings"
	"sync"
	"testing"

	"linkstream/schema/testkit"
)

// proxy forwards bytes to the server.
type proxy struct {
	net.Listener
	target string
	// on is called with the bytes that a client sends. Once it returns false, the server gets no more bytes from any
	// client.
	on func(sent []byte, forward func()) bool

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
	group sync.WaitGroup
}

// startProxy starts a proxy before the server of a DSN, and returns the DSN of the proxy.
func startProxy(t *testing.T, dsn string, on func(sent []byte, forward func()) bool) (*proxy, string) {
	t.Helper()
	rest := strings.TrimPrefix(dsn, "clickhouse://")
	at := strings.LastIndexByte(rest[:strings.IndexByte(rest, '/')], '@')
	host := rest[at+1 : strings.IndexByte(rest, '/')]
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	p := &proxy{Listener: ln, target: host, on: on, conns: map[net.Conn]bool{}}
	p.group.Go(func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			p.group.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() { ln.Close(); p.group.Wait() })
	return p, strings.Replace(dsn, host, ln.Addr().String(), 1)
}

// track reports whether a connection may live, and closes it when it is not.
func (p *proxy) track(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.cut {
		p.conns[conn] = true
	}
	return !p.cut
}

func (p *proxy) cutOff() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	for conn := range p.conns {
		conn.Close()
	}
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	if !p.track(client) || !p.track(server) {
		return
	}
	p.group.Go(func() {
		defer client.Close()
		buffer := make([]byte, 64<<10)
		for {
			n, err := server.Read(buffer)
			if n > 0 {
				client.Write(buffer[:n])
			}
			if err != nil {
				return
			}
		}
	})
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		forwarded := false
		forward := func() {
			if n > 0 && !forwarded {
				server.Write(buffer[:n])
			}
			forwarded = true
		}
		if !p.on(buffer[:n], forward) {
			p.cutOff()
			return
		}
		forward()
		if err != nil {
			return
		}
	}
}
