package load_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/bench/load"
	"linkstream/schema/testkit"
)

func TestFlood(t *testing.T) {
	run := func(t *testing.T, handler http.HandlerFunc, f load.Flood, enough func() bool) load.Harm {
		t.Helper()
		f.Addr, f.From = serve(t, handler), "127.0.0.2"
		ctx, stop := context.WithCancel(t.Context())
		harm := make(chan load.Harm, 1)
		go func() { harm <- f.Run(ctx) }()
		testkit.Eventually(t, "the flood has done enough", enough)
		stop()
		return <-harm
	}
	request := func(dst []byte) []byte { return fmt.Append(dst, "GET / HTTP/1.1\r\nHost: a\r\n\r\n") }
	t.Run("sends requests together, from its address, and takes any answer", func(t *testing.T) {
		var requests, others atomic.Int64
		harm := run(t, func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			if host, _, _ := net.SplitHostPort(r.RemoteAddr); host != "127.0.0.2" {
				others.Add(1)
			}
			w.WriteHeader(http.StatusTeapot)
		}, load.Flood{Conns: 3, Pipeline: 4, Request: request}, func() bool { return requests.Load() >= 100 })
		if n := requests.Load(); harm.Answers > n || harm.Answers < n-12 || harm.Connections < 1 || harm.Connections > 3 ||
			others.Load() > 0 {
			t.Errorf("%+v of %d requests, %d from elsewhere", harm, n, others.Load())
		}
	})
	t.Run("keeps its rate", func(t *testing.T) {
		var requests atomic.Int64
		began := time.Now()
		run(t, func(http.ResponseWriter, *http.Request) { requests.Add(1) },
			load.Flood{Conns: 2, Pipeline: 1, Rate: 100, Request: request}, func() bool { return requests.Load() >= 10 })
		if took := time.Since(began); float64(requests.Load()) > 4+100*took.Seconds() {
			t.Errorf("%d requests in %v", requests.Load(), took)
		}
	})
	t.Run("connects again when it is thrown out", func(t *testing.T) {
		var requests atomic.Int64
		harm := run(t, func(w http.ResponseWriter, _ *http.Request) {
			requests.Add(1)
			w.Header().Set("Connection", "close")
		}, load.Flood{Conns: 1, Pipeline: 1, Request: request}, func() bool { return requests.Load() >= 5 })
		if harm.Connections < 5 {
			t.Errorf("%+v", harm)
		}
	})
	t.Run("sends byte by byte", func(t *testing.T) {
		var requests atomic.Int64
		harm := run(t, func(http.ResponseWriter, *http.Request) { requests.Add(1) },
			load.Flood{Conns: 2, Pipeline: 1, ByteGap: time.Millisecond, Request: request},
			func() bool { return requests.Load() >= 2 })
		if harm.Connections > 2 {
			t.Errorf("%+v", harm)
		}
	})
	t.Run("reads slowly, and sends the next request when it has read the answer", func(t *testing.T) {
		var requests, answered atomic.Int64
		harm := run(t, func(w http.ResponseWriter, _ *http.Request) {
			requests.Add(1)
			_, _ = w.Write(make([]byte, 64<<10))
			answered.Add(1)
		}, load.Flood{Conns: 2, Pipeline: 1, ReadGap: time.Millisecond, Request: request},
			func() bool { return answered.Load() >= 4 })
		if n := requests.Load(); harm.Connections != 2 || harm.Answers > n || harm.Answers == 0 {
			t.Errorf("%+v of %d requests", harm, n)
		}
	})
	t.Run("idles, and connects again when it is thrown out", func(t *testing.T) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		testkit.Must(t, err)
		defer ln.Close()
		ctx, stop := context.WithCancel(t.Context())
		harm := make(chan load.Harm, 1)
		go func() { harm <- load.Flood{Addr: ln.Addr().String(), From: "127.0.0.2", Conns: 5}.Run(ctx) }()
		for i := range 10 {
			conn, err := ln.Accept()
			testkit.Must(t, err)
			if i < 5 {
				conn.Close() // whoever comes again has counted this connection
			} else {
				defer conn.Close()
			}
		}
		stop()
		if n := (<-harm).Connections; n < 5 || n > 10 {
			t.Errorf("%d connections, want 5 to 10", n)
		}
	})
}
