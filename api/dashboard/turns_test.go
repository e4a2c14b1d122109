package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/api/dashboard"
	"linkstream/schema/testkit"
)

// An account exports one file at a time, and does not delay other accounts.
func TestExportsTakeTurns(t *testing.T) {
	held, began := make(chan struct{}), make(chan struct{})
	var exports atomic.Int64
	s := startFaulty(t, func(_ context.Context, method string) error {
		if method == "LinksAfter" && exports.Add(1) == 1 {
			close(began)
			<-held
		}
		return nil
	})
	s.addLink(t, "first", "https://example.org/")
	s.addForeign(t)
	b, other := s.signedIn(t), s.browser(t)
	other.signIn("other@example.org", password)
	var first sync.WaitGroup
	window := b.copy()
	first.Go(func() { window.get("/dashboard/export.csv").want(t, http.StatusOK, "first") })
	<-began
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		second := b.send(method, "/dashboard/export.csv", nil)
		testkit.Equal(t, "status of a second one", second.status, http.StatusTooManyRequests)
		testkit.Equal(t, "Retry-After", second.header.Get("Retry-After"), "5")
	}
	for range 10 {
		other.get("/dashboard/export.csv").want(t, http.StatusOK)
		testkit.Equal(t, "HEAD", other.send(http.MethodHead, "/dashboard/export.csv", nil).status, http.StatusOK)
	}
	close(held)
	first.Wait()
	b.get("/dashboard/export.csv").want(t, http.StatusOK, "first")
}

// A client that reads a file too slowly does not get it. Time in which it waits for the server does not count.
func TestSlowReadersOfFiles(t *testing.T) {
	const size = 8 << 20
	// read reads a file at a speed, in bytes per second, from a server that takes pause before each KiB.
	read := func(speed int, pause time.Duration) (n int64, took time.Duration, sent error) {
		server, client := net.Pipe()
		defer client.Close()
		done := make(chan error, 1)
		go func() {
			defer server.Close()
			w := dashboard.NewPatientWriter(server, server)
			for range size >> 10 {
				time.Sleep(pause)
				if _, err := w.Write(make([]byte, 1<<10)); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		began, some := time.Now(), make([]byte, 1<<10)
		for {
			k, err := client.Read(some)
			if err != nil {
				break
			}
			n += int64(k)
			time.Sleep(time.Duration(k) * time.Second / time.Duration(speed))
		}
		return n, time.Since(began), <-done
	}
	for _, c := range []struct {
		name  string
		speed int
		pause time.Duration
		whole bool
	}{
		{"at the lowest speed", dashboard.LowestSpeed + 100, 0, true},
		{"at twice the lowest speed, from a slow server", 2 * dashboard.LowestSpeed, time.Second, true},
		{"at half of the lowest speed", dashboard.LowestSpeed / 2, 0, false},
		{"hardly", 10, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, took, err := read(c.speed, c.pause)
				if c.whole != (n == size) || c.whole != (err == nil) {
					t.Errorf("got %d bytes after %v: %v", n, took, err)
				}
				most := dashboard.ReadWithin + 2*time.Minute + time.Duration(1<<10/c.speed)*time.Second
				if !c.whole && (!errors.Is(err, os.ErrDeadlineExceeded) || took > most) {
					t.Errorf("it ends after %v with %v", took, err)
				}
			})
		})
	}
}

// Shares and readers of one account take the turns of one account.
func TestSharedReportsOfOneAccount(t *testing.T) {
	t.Parallel()
	const reading = 30 * time.Millisecond
	var readings atomic.Int64
	s := startFaulty(t, func(_ context.Context, method string) error {
		if method == "Report" {
			readings.Add(1)
			time.Sleep(reading) // the store is slow; the test does not wait for a state
		}
		return nil
	}, behindProxy, unpaced)
	s.addLink(t, "sale", "https://example.org/")
	s.addForeign(t)
	owner, other := s.signedIn(t), s.browser(t)
	other.signIn("other@example.org", password)
	var shares []string
	for range 20 {
		shares = append(shares, owner.share(t))
	}
	victim := other.share(t)
	networks := 0
	reader := func() *browser {
		networks++
		b := s.browser(t)
		b.fields = http.Header{"X-Forwarded-For": {fmt.Sprintf("192.0.%d.%d", networks/200, networks%200)}}
		return b
	}
	readings.Store(0)
	reader().get(victim+"?browser=quiet").want(t, http.StatusOK)
	each := readings.Load()
	ctx, cancel := context.WithCancel(t.Context())
	var flood sync.WaitGroup
	defer flood.Wait()
	defer cancel()
	for i := range 60 {
		b := reader()
		flood.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				b.get(fmt.Sprint(shares[i%len(shares)], "?browser=", i, "-", n)) // refused now and then
			}
		})
	}
	testkit.Eventually(t, "pages are made", func() bool { return readings.Load() > 3*each })
	for i := range 5 {
		before := readings.Load()
		reader().get(fmt.Sprint(victim, "?browser=", i)).want(t, http.StatusOK)
		if during := readings.Load() - before; during > 6*each {
			t.Errorf("%d readings while a page of another account was made, which takes %d", during, each)
		}
	}
}
