package clickhouse_test

import (
	"bytes"
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"
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

// TestReportPlans checks what each kind of report reads: which projections, and rows only of hours around UTC midnights. The queries for
// clusters, whose last way reads rows only, must count the same.
func TestReportPlans(t *testing.T) {
	dsn := engines.ClickHouse(t)
	store, raw := openClicks(t, dsn), openRaw(t, dsn)
	batch, source := new(schema.ClickBatch), storetest.NewTraffic()
	for day := range 3 { // for a single row, all plans are alike
		source.Day = source.Day.AddDate(0, 0, day)
		source.Fill(batch, 0, 30_000)
		testkit.Must(t, store.InsertClicks(t.Context(), batch))
	}
	onCluster, err := clickhouse.OnCluster(clickhouse.Config{DSN: dsn, Cluster: "main"})
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Close(t, onCluster) })
	utc, west := time.UTC, time.FixedZone("west", -5*3600)
	link, some := []int64{storetest.HotLink}, []int64{storetest.HotLink, 7919}
	filter, common := map[schema.Dimension]string{schema.ByCountry: "AZ"}, map[schema.Dimension]string{schema.ByDevice: "mobile"}
	both := map[schema.Dimension]string{schema.ByDevice: "mobile", schema.ByBrowser: "Safari"}
	for name, c := range map[string]struct {
		zone   *time.Location
		links  []int64
		filter map[schema.Dimension]string
		top    bool
		reads  string
		quick  string // what the quick way reads
	}{
		"a link":                       {utc, link, nil, false, "link_places link_quarters link_referrers weighted_counts", "link_places link_referrers weighted_counts"},
		"a link in another zone":       {west, link, nil, false, "clicks link_places link_quarters link_referrers weighted_counts", "clicks link_places link_quarters link_referrers weighted_counts"},
		"links":                        {utc, some, nil, true, "link_places link_quarters link_quarters link_referrers weighted_counts", "link_places link_quarters link_referrers weighted_counts"},
		"a filtered link":              {utc, link, filter, false, "dimensions dimensions", ""},
		"a filtered link elsewhere":    {west, link, filter, false, "clicks clicks dimensions dimensions", ""},
		"an account":                   {utc, nil, nil, true, "account_quarters dimensions dimensions weighted_accounts", ""},
		"an account in another zone":   {west, nil, nil, true, "account_quarters account_rows account_rows account_rows dimensions dimensions weighted_accounts", ""},
		"a filtered account":           {utc, nil, filter, true, "dimensions dimensions dimensions", ""},
		"a filtered account elsewhere": {west, nil, filter, true, "account_rows account_rows account_rows dimensions dimensions dimensions", ""},
		"an often filtered link":       {utc, link, common, false, "dimensions dimensions weighted_counts weighted_counts", ""},
		"it elsewhere":                 {west, link, common, false, "clicks clicks clicks clicks dimensions dimensions weighted_counts weighted_counts", ""},
		"often filtered links":         {utc, some, both, true, "dimensions dimensions weighted_counts weighted_counts weighted_counts", ""},
		"an often filtered account":    {west, nil, common, true, "account_rows account_rows account_rows account_rows dimensions dimensions dimensions dimensions", ""},
	} {
		t.Run(name+" reads "+c.reads, func(t *testing.T) {
			q := schema.ReportQuery{AccountID: storetest.HotAccount, Links: c.links, Filter: c.filter, Limit: 10, TopLinks: c.top}
			for i := range 4 {
				q.Bounds = append(q.Bounds, time.Date(2026, time.November, 20+i, 0, 0, 0, 0, c.zone).UTC())
			}
			q.Previous = q.Bounds[0].AddDate(0, 0, -3)
			query, args, settings := clickhouse.WholeReport(q)
			plan := explain(t, raw, settings, query, args...)
			var reads []string
			for _, read := range readFrom.FindAllStringSubmatch(plan, -1) {
				reads = append(reads, read[1])
			}
			slices.Sort(reads)
			testkit.Equal(t, "reads", strings.Join(reads, " "), c.reads)
			if strings.Count(plan, "PrimaryKey") != len(reads) || wholeTable.MatchString(plan) {
				t.Errorf("not only ranges are read:\n%s", plan)
			}
			reads = nil
			for _, part := range clickhouse.QuickParts(q) {
				plan := explain(t, raw, part.Settings, part.Query)
				read := readFrom.FindStringSubmatch(plan)
				if read == nil || read[1] != cmp.Or(part.Projection, "clicks") || strings.Count(plan, "ReadFrom") != 1 ||
					!strings.Contains(plan, "PrimaryKey") || wholeTable.MatchString(plan) {
					t.Errorf("not only ranges of %q are read:\n%s", part.Projection, plan)
				}
				reads = append(reads, read[1])
			}
			slices.Sort(reads)
			testkit.Equal(t, "quick reads", strings.Join(reads, " "), c.quick)
			want, err := onCluster.ScanReport(t.Context(), q)
			testkit.Must(t, err)
			if len(want.Names) < len(schema.Dimensions()) {
				t.Errorf("only %d dimensions have names", len(want.Names))
			}
			for name, read := range map[string]func(context.Context, schema.ReportQuery) (schema.Report, error){
				"report": store.Report, "report of a cluster": onCluster.Report, "report by one query": onCluster.JoinedReport,
			} {
				got, err := read(t.Context(), q)
				testkit.Must(t, err)
				testkit.Equal(t, name, got, want)
			}
		})
	}
	t.Run("reports of links only read no names", func(t *testing.T) {
		for want, q := range map[string]schema.ReportQuery{
			"account_quarters weighted_accounts": {},
			"dimensions dimensions":              {Filter: filter},
			"link_quarters link_quarters":        {Links: some},
			"weighted_counts weighted_counts":    {Links: some, Filter: common},
		} {
			q.AccountID, q.Limit, q.TopLinks, q.OnlyLinks = storetest.HotAccount, 10, true, true
			q.Previous, q.Bounds = source.Day.AddDate(0, 0, -4), []time.Time{source.Day.AddDate(0, 0, -3), source.Day.AddDate(0, 0, 1)}
			query, args, settings := clickhouse.WholeReport(q)
			var reads []string
			for _, read := range readFrom.FindAllStringSubmatch(explain(t, raw, settings, query, args...), -1) {
				reads = append(reads, read[1])
			}
			testkit.Equal(t, "reads", strings.Join(reads, " "), want)
			named := q
			named.OnlyLinks = false
			all, err := store.Report(t.Context(), named)
			testkit.Must(t, err)
			all.Names = map[schema.Dimension][]schema.NameCount{}
			for name, read := range map[string]func(context.Context, schema.ReportQuery) (schema.Report, error){
				"report": store.Report, "report of a cluster": onCluster.Report, "report by one query": onCluster.JoinedReport, "report of rows": onCluster.ScanReport,
			} {
				got, err := read(t.Context(), q)
				testkit.Must(t, err)
				testkit.Equal(t, name, got, all)
				if len(got.Links) == 0 {
					t.Errorf("%s has no links", name)
				}
			}
		}
	})
	t.Run("a link's report from rows, or by one query, is the same", func(t *testing.T) {
		for _, link := range some {
			want, err := store.LinkReport(t.Context(), link, source.Day)
			testkit.Must(t, err)
			for name, read := range map[string]func(context.Context, int64, time.Time) (schema.LinkReport, error){
				"report of rows": onCluster.ScanLinkReport, "report by one query": store.JoinedLinkReport,
			} {
				got, err := read(t.Context(), link, source.Day)
				testkit.Must(t, err)
				testkit.Equal(t, name, got, want)
			}
		}
	})
	t.Run("an account's report by one query is the same", func(t *testing.T) {
		first := source.Day.AddDate(0, 0, -3)
		for _, account := range []int64{storetest.HotAccount, 7} {
			want, err := store.AccountReport(t.Context(), account, first, source.Day)
			testkit.Must(t, err)
			got, err := store.JoinedAccountReport(t.Context(), account, first, source.Day)
			testkit.Must(t, err)
			testkit.Equal(t, "report", got, want)
			if len(want.Days) < 2 {
				t.Errorf("account %d has %d days", account, len(want.Days))
			}
		}
	})
}

// TestLinkReportIsOfOneMoment counts clicks before each of a report's queries for referrers reaches the server, usually after the other
// queries were answered.
func TestLinkReportIsOfOneMoment(t *testing.T) {
	t.Parallel()
	dsn := engines.ClickHouse(t)
	store := openClicks(t, dsn)
	batch, source := new(schema.ClickBatch), storetest.NewTraffic()
	count := func() error {
		source.Fill(batch, 0, 10)
		for i := range batch.LinkID {
			batch.LinkID[i], batch.Device[i], batch.Browser[i], batch.Referrer[i] = storetest.HotLink, schema.Mobile, "Firefox", "a.example"
			batch.OS[i], batch.Language[i], batch.Country[i] = "iOS", "de", "DE"
		}
		return store.InsertClicks(t.Context(), batch)
	}
	testkit.Must(t, count())
	var counting sync.Mutex
	_, behind := startProxy(t, dsn, func(sent []byte, _ func()) bool {
		if bytes.Contains(sent, []byte("GROUP BY referrer")) {
			counting.Lock()
			defer counting.Unlock()
			if err := count(); err != nil {
				t.Error(err)
			}
		}
		return true
	})
	report, err := openClicks(t, behind).LinkReport(t.Context(), storetest.HotLink, time.Time{})
	testkit.Must(t, err)
	n := report.Devices[schema.Mobile]
	of := func(name string) []schema.NameCount { return []schema.NameCount{{Name: name, Total: n}} }
	testkit.Equal(t, "report", report, schema.LinkReport{
		Days: []schema.DayReport{{Date: source.Day.Format(time.DateOnly), People: n}}, Devices: map[schema.Device]int64{schema.Mobile: n},
		Browsers: of("Firefox"), Systems: of("iOS"), Languages: of("de"), Referrers: of("a.example"), Countries: of("DE"),
	})
}
