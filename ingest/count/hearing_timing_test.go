package count_test

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/ingest/count"
	"linkstream/schema"
	"linkstream/schema/sqlite/sqlitetest"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

// BenchmarkWebhooks measures a click on one machine, in transactions of 1000 on 200 accounts, of which so many have a webhook that hears
// of clicks. Without a store of webhooks nobody looks for any.
func BenchmarkWebhooks(b *testing.B) {
	const accounts, clicks = 200, 1000
	for _, hooks := range []int{-1, 0, 1, 100} {
		b.Run(fmt.Sprintf("webhooks=%d", hooks), func(b *testing.B) {
			folder := b.TempDir()
			store, err := sqlitetest.OpenClickStore(b.Context(), filepath.Join(folder, "clicks.db"))
			testkit.Must(b, err)
			defer testkit.Close(b, store)
			links, err := sqlitetest.Open(b.Context(), filepath.Join(folder, "links.db"))
			testkit.Must(b, err)
			defer testkit.Close(b, links)
			for n := range accounts {
				owner := schema.Account{Email: fmt.Sprintf("%d@example.org", n), CreatedAt: time.Now()}
				testkit.Must(b, links.CreateAccount(b.Context(), &owner))
				link := schema.Link{AccountID: owner.ID, Hash: fmt.Sprint("link", n), URL: "https://example.org/", Active: true, CreatedAt: time.Now()}
				testkit.Must(b, links.CreateLink(b.Context(), &link))
				if n < hooks {
					testkit.Must(b, links.CreateWebhook(b.Context(), &schema.Webhook{AccountID: owner.ID, URL: "https://example.org/",
						Events: []string{schema.EventLinkClicked}, Active: true, Secret: "whsec_bmV3", CreatedAt: time.Now(), UpdatedAt: time.Now()}))
				}
			}
			var hearer schema.HearingStore
			if hooks >= 0 {
				hearer = links
			}
			w := count.NewWriter(store, hearer, nil, slog.New(slog.DiscardHandler), metrics.NewSet())
			var batch stream.Batch
			seq, before := uint64(0), cpuTime(b)
			for b.Loop() {
				batch.Reset(time.Now())
				for range clicks {
					seq++
					batch.Append(nil, schema.AppendClick(nil, &schema.Click{Lane: lane(1), Seq: seq, LinkID: int64(seq%accounts) + 1,
						AccountID: int64(seq%accounts) + 1, ClickedAt: time.Now(), UserAgent: []byte("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")}))
				}
				testkit.Must(b, errors.Join(w.Count(b.Context(), &batch)...))
			}
			b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/float64(b.N)/clicks, "µs-CPU/click")
		})
	}
}

func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	testkit.Must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
