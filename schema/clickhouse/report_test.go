//go:build engines

package clickhouse_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/clickhouse"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

var (
	readFrom   = regexp.MustCompile(`ReadFrom\w+ \((?:\w+\.)?(\w+)\)`)
	wholeTable = regexp.MustCompile(`PrimaryKey\s+Condition: true`)
)

// TestReportReads checks which projections reports read, and that they read rows only of parts of days. The fallbacks
// for clicks that are counted during each read must count the same.
func TestReportReads(t *testing.T) {
	dsn := engines.ClickHouse(t)
	store, raw := openClicks(t, dsn), openRaw(t, dsn)
	batch, source := new(schema.ClickBatch), storetest.NewTraffic()
	for day := range 3 { // for a single row, all plans are alike
		source.Day = source.Day.AddDate(0, 0, day)
		source.Fill(batch, 0, 30_000)
		testkit.Must(t, store.InsertClicks(t.Context(), batch))
	}
	// Links with few clicks and many imported ones are among the most clicked links.
	imported := func(link int64) schema.History {
		day := time.Date(2026, time.November, 21, 0, 0, 0, 0, time.UTC)
		return storetest.HistoryOf(storetest.HotAccount, link, "bitly", day, 10_000, link)
	}
	testkit.Must(t, store.SetHistories(t.Context(), imported(7919), imported(7920), imported(storetest.HotLink+1)))
	utc, west := time.UTC, time.FixedZone("west", -5*3600)
	link, some := []int64{storetest.HotLink}, []int64{storetest.HotLink, 7919}
	filter := map[schema.Dimension]string{schema.ByCountry: "AZ"}
	const short, long = 4, clickhouse.RankedDays + 1
	for name, c := range map[string]struct {
		zone   *time.Location
		links  []int64
		filter map[schema.Dimension]string
		days   int
		reads  string
	}{
		"a link": {utc, link, nil, short, "link_clients link_places link_referrers link_visitors"},
		"a link in another zone": {west, link, nil, short, "clicks clicks link_clients link_places link_quarters " +
			"link_referrers"},
		"links": {utc, some, nil, short, "link_clients link_clients link_places link_referrers " +
			"link_visitors"},
		"a long time of links": {utc, some, nil, long, "link_clients link_clients link_places link_referrers " +
			"link_referrers link_referrers link_visitors"},
		"a long time elsewhere": {west, some, nil, long, "clicks clicks clicks clicks clicks clicks link_clients " +
			"link_clients link_places link_quarters link_referrers link_referrers link_referrers"},
		"a filtered link":           {utc, link, filter, short, "dimensions dimensions dimensions"},
		"a filtered link elsewhere": {west, link, filter, short, "clicks clicks dimensions dimensions dimensions"},
		"an account": {utc, nil, nil, short, "account_links account_quarters account_visitors dimensions " +
			"dimensions dimensions dimensions dimensions"},
		"an account in another zone": {west, nil, nil, short, "account_links account_quarters account_rows account_rows " +
			"account_rows account_rows account_rows account_rows dimensions dimensions dimensions dimensions dimensions"},
		"a filtered account": {utc, nil, filter, short, "dimensions dimensions dimensions dimensions dimensions " +
			"dimensions"},
		"a filtered account elsewhere": {west, nil, filter, short, "account_rows account_rows account_rows account_rows " +
			"account_rows account_rows dimensions dimensions dimensions dimensions dimensions dimensions"},
	} {
		t.Run(name+" reads "+c.reads, func(t *testing.T) {
			q := storetest.Days(storetest.HotAccount, c.links, time.Date(2026, time.November, 20, 0, 0, 0, 0, time.UTC), c.days)
			q.TopLinks = len(c.links) != 1
			q.Filter = c.filter
			_, offset := q.Bounds[0].In(c.zone).Zone()
			for i := range q.Bounds {
				q.Bounds[i] = q.Bounds[i].Add(-time.Duration(offset) * time.Second)
			}
			var reads []string
			for _, part := range clickhouse.ReportParts(q) {
				part.Settings["force_optimize_projection"] = 0 // the filtered series of another zone is read as rows
				plan := explain(t, raw, part.Settings, part.Query, part.Args...)
				for _, read := range readFrom.FindAllStringSubmatch(plan, -1) {
					reads = append(reads, read[1])
				}
				if strings.Count(plan, "PrimaryKey") != strings.Count(plan, "ReadFrom") || wholeTable.MatchString(plan) {
					t.Errorf("not only ranges are read:\n%s", plan)
				}
			}
			slices.Sort(reads)
			testkit.Equal(t, "reads", strings.Join(reads, " "), c.reads)
			want, err := store.Report(t.Context(), q)
			testkit.Must(t, err)
			if want.Series[1].Total() == 0 {
				t.Errorf("the report is empty: %+v", want)
			}
			joined, err := store.JoinedReport(t.Context(), q)
			testkit.Must(t, err)
			testkit.Equal(t, "report by one query", joined, want)
			scanned, err := store.ScanReport(t.Context(), q)
			testkit.Must(t, err)
			testkit.Equal(t, "report by rows", scanned, want)
			q.Yields = true
			yielding, err := store.Report(t.Context(), q)
			testkit.Must(t, err)
			testkit.Equal(t, "report that yields", yielding, want)
			for _, part := range clickhouse.ReportParts(q) {
				testkit.Equal(t, "priority", part.Settings["priority"], any(2))
			}
		})
	}
}
