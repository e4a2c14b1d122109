package clickhouse_test

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// holdingProxy forwards bytes to the server. When it is armed, it holds the next insert until it is released.
type holdingProxy struct {
	net.Listener
	target  string
	armed   atomic.Bool
	held    chan struct{} // closed when an insert is held
	release chan struct{}
	conns   sync.WaitGroup
}

func startHoldingProxy(t *testing.T, target string) *holdingProxy {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	p := &holdingProxy{Listener: ln, target: target, held: make(chan struct{}), release: make(chan struct{})}
	p.conns.Go(func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			p.conns.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() { ln.Close(); p.conns.Wait() })
	return p
}

func (p *holdingProxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
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
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if bytes.Contains(buffer[:n], []byte("INSERT INTO clicks")) && p.armed.CompareAndSwap(true, false) {
			close(p.held)
			<-p.release
		}
		if n > 0 {
			server.Write(buffer[:n])
		}
		if err != nil {
			return
		}
	}
}

// TestFrozenInsertIsNotCountedTwice suspends a worker between its check of the position and its insert, until the server
// has forgotten the tokens of that time.
func TestFrozenInsertIsNotCountedTwice(t *testing.T) {
	const window, each, batches = 20, 10, 30
	dsn := engines.ClickHouse(t)
	store, raw := openClicks(t, dsn), openRaw(t, dsn)
	exec(t, raw, fmt.Sprintf("ALTER TABLE clicks MODIFY SETTING non_replicated_deduplication_window = %d", window))
	rest := strings.TrimPrefix(dsn, "clickhouse://")
	at := strings.LastIndexByte(rest[:strings.IndexByte(rest, '/')], '@')
	host := rest[at+1 : strings.IndexByte(rest, '/')]
	proxy := startHoldingProxy(t, host)
	frozen := openClicks(t, strings.Replace(dsn, host, proxy.Addr().String(), 1))
	frozen.ExpireAfter(time.Second)

	late := new(schema.ClickBatch)
	storetest.NewTraffic().Fill(late, 0, each)
	proxy.armed.Store(true)
	outcome := make(chan error, 1)
	go func() { outcome <- frozen.InsertClicks(t.Context(), late) }()
	select {
	case <-proxy.held:
	case <-time.After(testkit.Patience):
		t.Fatal("the insert is not held")
	}
	const clock = "SELECT toUInt64(toUnixTimestamp(now()))"
	checked := number(t, raw, clock)
	batch, source := new(schema.ClickBatch), storetest.NewTraffic()
	for range batches {
		source.Fill(batch, 0, each)
		insert(t, store, batch)
	}
	testkit.Eventually(t, "the insert expires", func() bool { return number(t, raw, clock) > checked+1 })
	close(proxy.release)
	testkit.WantCode(t, <-outcome, schema.CodeConflict)
	wantRows(t, raw, 0, each*batches)
}
