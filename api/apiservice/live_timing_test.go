package apiservice_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/api/apiservice"
	"linkstream/api/auth"
	"linkstream/api/turns"
	"linkstream/schema"
	"linkstream/schema/sqlite"
	"linkstream/schema/testkit"
)

// busyClicks has more clicks on each link whenever it is asked.
type busyClicks struct {
	turns.Store
	clicks atomic.Int64
}

func (b *busyClicks) ClickTotals(
	_ context.Context, links, _ []int64,
) (ofLinks, ofAccounts map[int64]schema.Period, err error) {
	n := b.clicks.Add(1)
	ofLinks = map[int64]schema.Period{}
	for _, id := range links {
		ofLinks[id] = schema.Period{People: n}
	}
	return ofLinks, nil, nil
}

// BenchmarkShortenBesideStreams creates links while many streams have an event per second each. It reports the 99th
// percentile.
func BenchmarkShortenBesideStreams(b *testing.B) {
	for _, streams := range []int{0, 10, 1000} {
		b.Run(fmt.Sprintf("streams=%d", streams), func(b *testing.B) {
			links, clicks := openStores(b)
			defer testkit.Close(b, clicks)
			cfg := config()
			cfg.MaxConnectionsPerAddress = 0
			s, err := apiservice.New(cfg, links, &busyClicks{Store: clicks}, nil, discard)
			testkit.Must(b, err)
			stop := run(s)
			defer func() { testkit.Must(b, stop()) }()
			for range streams / 10 {
				listen(b, s, links, 10)
			}
			var took []time.Duration
			var token string
			b.ResetTimer()
			for i := range b.N {
				if i%1500 == 0 { // within the rate limit
					_, token = addAccount(b, links)
				}
				began := time.Now()
				status, body, err := tryCall(b.Context(), http.MethodPost, "http://"+s.Addr()+"/api/v1/shorten", token,
					`{"long_url": "https://example.com/"}`)
				if took = append(took, time.Since(began)); err != nil || status != http.StatusCreated {
					b.Fatal(status, body, err)
				}
			}
			b.StopTimer()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}

func addAccount(b *testing.B, links *sqlite.Store) (id int64, secret string) {
	account := schema.Account{Email: strings.ToLower(rand.Text()) + "@example.org", CreatedAt: time.Now()}
	testkit.Must(b, links.CreateAccount(b.Context(), &account))
	secret, token := auth.NewToken(account.ID, "test")
	testkit.Must(b, links.CreateToken(b.Context(), &token))
	return account.ID, secret
}

// listen opens streams of a new account and reads them until the benchmark ends.
func listen(b *testing.B, s *apiservice.Service, links *sqlite.Store, streams int) {
	account, secret := addAccount(b, links)
	hash := fmt.Sprintf("link-%d", account)
	testkit.Must(b, links.CreateLink(b.Context(), &schema.Link{AccountID: account, Hash: hash, URL: "https://example.com/",
		Active: true, CreatedAt: time.Now()}))
	for range streams {
		conn, err := net.Dial("tcp", s.Addr())
		testkit.Must(b, err)
		b.Cleanup(func() { conn.Close() })
		fmt.Fprintf(conn, "GET /api/v1/links/%s/live HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n", hash, secret)
		lines := bufio.NewScanner(conn)
		for lines.Scan() && !strings.HasPrefix(lines.Text(), "data: ") { // until the first event
		}
		testkit.Must(b, lines.Err())
		go func() {
			for lines.Scan() {
			}
		}()
	}
}
