package dashboard_test

import (
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// BenchmarkPages measures pages of an account with 5000 links, the first of which has clicks on each day of eight years. CPU is that of
// the whole process, the client included.
func BenchmarkPages(b *testing.B) {
	s := start(b, unpaced)
	now := s.now().UTC().Truncate(time.Second)
	var first schema.Link
	var batch schema.ClickBatch
	batch.Reset(0, 0)
	batch.Time = now
	click := func(link schema.Link, at time.Time) {
		batch.Offset, batch.Lane = append(batch.Offset, batch.Next), append(batch.Lane, schema.Lane{Number: 1})
		batch.Next++
		batch.Seq, batch.LinkID, batch.AccountID = append(batch.Seq, uint64(batch.Next)), append(batch.LinkID, link.ID), append(batch.AccountID, link.AccountID)
		batch.ClickedAt, batch.Device = append(batch.ClickedAt, at), append(batch.Device, schema.Mobile)
		batch.Browser, batch.Referrer, batch.Country = append(batch.Browser, "Safari"), append(batch.Referrer, ""), append(batch.Country, "DE")
		batch.OS, batch.Language = append(batch.OS, "iOS"), append(batch.Language, "de")
	}
	for i := range 5000 {
		link := schema.Link{AccountID: s.account.ID, Hash: fmt.Sprintf("link-%d", i), URL: fmt.Sprintf("https://example.org/%d", i), Active: true,
			Tags: []string{fmt.Sprintf("tag-%d", i%10)}, CreatedAt: now.AddDate(-8, 0, 0)}
		testkit.Must(b, s.links.CreateLink(b.Context(), &link))
		if i == 0 {
			first = link
		}
		click(link, now.AddDate(0, 0, -i%25))
	}
	for day := range 8 * 365 {
		click(first, now.AddDate(0, 0, -day))
	}
	testkit.Must(b, s.clicks.InsertClicks(b.Context(), storetest.NoNames(&batch)))
	client := s.signedIn(b)
	for name, path := range map[string]string{"overview": "/dashboard", "links": "/dashboard/links", "last links": "/dashboard/links?page=250",
		"links by tag": "/dashboard/links?tag=tag-3", "link, eight years": "/dashboard/links/0/link-0?from=2019-01-01", "report": "/dashboard/report",
		"report with totals": "/dashboard/report?totals=show",
		"tags":               "/dashboard/tags"} {
		b.Run(name, func(b *testing.B) {
			began, n := cpu(b), 0
			for b.Loop() {
				if a := client.get(path); a.status != http.StatusOK && a.status != http.StatusNotFound {
					b.Fatal(a.status, a.text())
				}
				n++
			}
			b.ReportMetric(float64((cpu(b)-began).Microseconds())/float64(n), "cpu-µs/op")
		})
	}
}

// cpu returns the time that this process has had of CPUs.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	testkit.Must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
