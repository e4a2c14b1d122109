//go:build deploy

package outside_test

import (
	"crypto/x509"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/api/customdomain/dnstest"
	"linkstream/schema/testkit"
)

// eabKey is the secret of the external account that the authority requires.
const eabKey = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W"

// authority is pebble and what leads to it and from it.
type authority struct {
	door       *forwarder // to pebble
	plain, tls *forwarder // from pebble to port 80 and 443 of the hosts
	names      *dnstest.Server
	issuers    *x509.CertPool // of the certificates that it issues
	roots      string         // file of the authority of its own HTTPS
	directory  string
	eabID      string
}

// startAuthority starts an authority whose certificates are valid for the duration.
func startAuthority(t *testing.T, valid time.Duration) *authority {
	t.Helper()
	a := &authority{door: forward(t), plain: forward(t), tls: forward(t), names: dnstest.Start(t), eabID: "kid-1"}
	running := startPebble(t, pebbleConfig{HTTPPort: a.plain.port(), TLSPort: a.tls.port(), Resolver: a.names.Addr(),
		Valid:    valid,
		Accounts: map[string]string{a.eabID: eabKey}})
	a.issuers, a.roots = running.Issuers, running.Roots
	a.door.to(running.Addr)
	_, port, _ := net.SplitHostPort(a.door.addr())
	a.directory = "https://localhost:" + port + "/dir"
	return a
}

// host makes names of hosts lead to the edges.
func (a *authority) host(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		a.names.Add(t, name+". A 127.0.0.1")
	}
}

// flags are those of a program that uses the authority.
func (a *authority) flags() []string {
	return []string{"-edge.acme-email=operator@example.org", "-edge.acme-directory=" + a.directory, "-edge.acme-roots=" +
		a.roots,
		"-edge.acme-key=" + "0123456789abcdef0123456789abcdef", "-edge.acme-eab-id=" + a.eabID, "-edge.acme-eab-key=" +
			eabKey}
}

// forwarder forwards connections to addresses, one after the other.
type forwarder struct {
	listener net.Listener
	accepted atomic.Int64

	mu      sync.Mutex
	targets []string
	next    int
	closed  bool // connections are closed at once
	conns   map[net.Conn]struct{}
	held    chan struct{} // if not nil, connections wait until it is closed
}

func forward(t *testing.T) *forwarder {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	f := &forwarder{listener: ln, conns: map[net.Conn]struct{}{}}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			f.accepted.Add(1)
			go f.serve(conn)
		}
	})
	t.Cleanup(func() { ln.Close(); running.Wait() })
	return f
}

func (f *forwarder) addr() string { return f.listener.Addr().String() }

func (f *forwarder) port() int { return f.listener.Addr().(*net.TCPAddr).Port }

// to sets the addresses.
func (f *forwarder) to(targets ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.targets = targets
}

// open sets whether connections are forwarded, or closed, those that are open as well.
func (f *forwarder) open(open bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = !open
	if f.closed {
		for conn := range f.conns {
			conn.Close()
		}
	}
}

// hold makes connections wait until release is called.
func (f *forwarder) hold() (release func()) {
	held := make(chan struct{})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = held
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.held = nil
		close(held)
	}
}

func (f *forwarder) serve(conn net.Conn) {
	defer conn.Close()
	f.mu.Lock()
	closed, held := f.closed, f.held
	f.mu.Unlock()
	if held != nil {
		<-held
	}
	if closed {
		return
	}
	f.mu.Lock()
	if len(f.targets) == 0 {
		f.mu.Unlock()
		return
	}
	f.next++
	target := f.targets[f.next%len(f.targets)]
	f.conns[conn] = struct{}{}
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.conns, conn)
	}()
	to, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer to.Close()
	ended := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{conn, to}, {to, conn}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			ended <- struct{}{}
		}()
	}
	<-ended
}
