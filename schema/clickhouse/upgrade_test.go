package clickhouse_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/clickhouse"
	"linkstream/schema/testkit"
)

// TestUpgrade goes on with a table of before reports, in which link 7 has 30,000 clicks, a third of them of bots.
func TestUpgrade(t *testing.T) {
	dsn := engines.ClickHouse(t)
	raw := openRaw(t, dsn)
	testkit.Must(t, clickhouse.MigrateFirst(t.Context(), openDB(t, dsn)))
	exec(t, raw, `INSERT INTO clicks
			(link_id, clicked_at, device, browser, kafka_offset, kafka_next, incarnation, lane, seq, month)
		SELECT 7, toDateTime64('2026-11-20 12:00:00', 3, 'UTC') + number, if(number % 3 = 0, 'bot', 'mobile'), 'Chrome',
			number, if(number = 29999, 30000, 0), unhex(repeat('00', 16)), 3, number + 1, 202611 FROM numbers(30000)`)
	exec(t, raw, `SYSTEM STOP MERGES clicks`) // nor does it make projections of old parts
	clicks := openClicks(t, dsn)
	oldReport := "{[{2026-11-20 20000 10000}] map[bot:10000 mobile:20000] [{Chrome 20000}] [{ 20000}] [{ 20000}]}"

	t.Run("keeps clicks, marks and position", func(t *testing.T) {
		at, err := clicks.Position(t.Context(), 0)
		want := schema.Position{Next: 30000, Marks: map[schema.Lane]uint64{{Number: 3}: 30000}}
		if err != nil || fmt.Sprint(at) != fmt.Sprint(want) {
			t.Fatalf("got position %v, error %v", at, err)
		}
		stats, err := clicks.LinkStats(t.Context(), 7)
		if err != nil || stats.TotalClicks != 30000 {
			t.Fatalf("got stats %v, error %v", stats, err)
		}
	})
	t.Run("reports old clicks at once, as of no known referrer, country and account", func(t *testing.T) {
		wantReports(t, clicks, oldReport, "{[] []}")
	})
	newReport := strings.NewReplacer("[{ 20000}] [{ 20000}]", "[{ 20000} {news.example.org 2}] [{ 20000} {DE 2}]",
		"{2026-11-20 20000", "{2026-11-20 20002", "mobile:20000", "mobile:20002", "Chrome 20000", "Chrome 20002").
		Replace(oldReport)
	t.Run("goes on counting", func(t *testing.T) {
		batch, source := new(schema.ClickBatch), newTraffic()
		source.next = 30000
		source.fill(batch, 0, 2)
		for i := range 2 {
			batch.LinkID[i], batch.AccountID[i] = 7, 2
			batch.ClickedAt[i] = time.Date(2026, time.November, 20, i, 0, 0, 0, time.UTC)
			batch.Device[i], batch.Browser[i] = schema.Mobile, "Chrome"
			batch.Referrer[i], batch.Country[i] = "news.example.org", "DE"
		}
		insert(t, clicks, batch)
		wantReports(t, clicks, newReport, "{[{2026-11-20 2 0}] [{7 2}]}")
	})
	t.Run("makes projections of old parts, which change nothing", func(t *testing.T) {
		exec(t, raw, `SYSTEM START MERGES clicks`)
		ofTable := ` WHERE database = currentDatabase() AND table = 'clicks' AND `
		parts := `SELECT count() FROM system.projection_parts` + ofTable + `active AND name IN ('sources', 'accounts')`
		running := `SELECT count() FROM system.mutations` + ofTable + `NOT is_done`
		testkit.Eventually(t, "the mutations end", func() bool { return number(t, raw, running) == 0 })
		if n := number(t, raw, parts); n < 2 || n%2 != 0 {
			t.Errorf("%d parts of new projections", n)
		}
		wantReports(t, clicks, newReport, "{[{2026-11-20 2 0}] [{7 2}]}")
	})
}

// wantReports compares the reports of link 7 and of account 2.
func wantReports(t *testing.T, clicks *clickhouse.Clicks, link, account string) {
	t.Helper()
	ofLink, err := clicks.LinkReport(t.Context(), 7, time.Time{})
	if err != nil || fmt.Sprint(ofLink) != link {
		t.Errorf("got report of the link %v, error %v, want %v", ofLink, err, link)
	}
	ofAccount, err := clicks.AccountReport(t.Context(), 2, time.Time{})
	if err != nil || fmt.Sprint(ofAccount) != account {
		t.Errorf("got report of the account %v, error %v, want %v", ofAccount, err, account)
	}
}
