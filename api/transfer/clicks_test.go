package transfer_test

import (
	"errors"
	"strings"
	"testing"

	"linkstream/api/transfer"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// history returns what a source says about a link.
func (f *fixture) history(t *testing.T, hash, source string) []schema.DayCount {
	t.Helper()
	h, err := f.clicks.History(t.Context(), f.link(t, 0, hash).ID, source)
	if !errors.Is(err, schema.ErrNoHistory) {
		testkit.Must(t, err)
	}
	return h.Days
}

// with imports or previews a file with options.
func (f *fixture) with(t *testing.T, file string, opts transfer.Options) (preview, report transfer.Report) {
	t.Helper()
	preview, err := f.Preview(t.Context(), f.account, strings.NewReader(file), opts)
	testkit.Must(t, err)
	report, err = f.Import(t.Context(), f.account, strings.NewReader(file), opts)
	testkit.Must(t, err)
	return preview, report
}

func TestImportedClicks(t *testing.T) {
	f := newFixture(t)
	file := lines("keyword,url,timestamp,clicks", "a,https://example.com/a,2013-06-07 08:09:10,41",
		"b,https://example.com/b,2014-06-07 23:59:59,0", "c,https://example.com/c,2014-06-07 00:00:00,x",
		"d,https://example.com/d,2014-06-07 00:00:00,2000000000")
	for range 2 { // a repetition replaces
		preview, report := f.with(t, file, transfer.Options{})
		testkit.Equal(t, "clicks", []int64{preview.Clicks, report.Clicks}, []int64{41, 41})
		testkit.Equal(t, "history", f.history(t, "a", "yourls"), []schema.DayCount{{Date: "2013-06-07", Total: 41}})
		for _, none := range []string{"b", "c", "d"} {
			testkit.Equal(t, "history of "+none, len(f.history(t, none, "yourls")), 0)
		}
	}
	stats, err := f.clicks.LinkStats(t.Context(), f.link(t, 0, "a").ID)
	testkit.Must(t, err)
	testkit.Equal(t, "total of the link", stats.TotalClicks, 41)

	t.Run("of a source that is named", func(t *testing.T) {
		f.with(t, file, transfer.Options{Source: "old-house"})
		testkit.Equal(t, "history", f.history(t, "a", "old-house"), []schema.DayCount{{Date: "2013-06-07", Total: 41}})
		_, err := f.Import(t.Context(), f.account, strings.NewReader(file), transfer.Options{Source: "Old House"})
		testkit.WantCode(t, err, schema.CodeInvalid)
	})
	t.Run("of rows that are one link are added", func(t *testing.T) {
		_, report := f.with(t, lines("long_url,clicks,created_at", "https://example.com/x,3,2020-01-01",
			"https://example.com/x,4,2020-01-02"), transfer.Options{})
		links, total, err := f.Links(t.Context(), f.account, schema.LinkFilter{}, 1)
		testkit.Must(t, err)
		testkit.Equal(t, "links", total, 5)
		testkit.Equal(t, "history", f.history(t, links[0].Hash, "import"), []schema.DayCount{{Date: "2020-01-01", Total: 7}})
		testkit.Equal(t, "clicks", report.Clicks, 7)
	})
	t.Run("of an own export are not added to the same clicks", func(t *testing.T) {
		own := lines("alias,long_url,clicks,created_at", "a,https://example.com/a,82,2013-06-07T08:09:10+00:00",
			"e,https://example.com/e,5,2013-06-07T08:09:10+00:00")
		for _, clicks := range []int64{5, 0} { // those of e are there after the first time
			preview, report := f.with(t, own, transfer.Options{})
			testkit.Equal(t, "clicks", []int64{preview.Clicks, report.Clicks}, []int64{clicks, clicks})
		}
		testkit.Equal(t, "history of a", len(f.history(t, "a", "import")), 0)
		testkit.Equal(t, "history of e", f.history(t, "e", "import"), []schema.DayCount{{Date: "2013-06-07", Total: 5}})
	})
}

// TestFileOfClicks replaces a total by the clicks of each day.
func TestFileOfClicks(t *testing.T) {
	f := newFixture(t)
	f.with(t, lines("keyword,url,timestamp,clicks", "a,https://example.com/a,2013-06-07 08:09:10,41",
		"b,https://example.com/b,2013-06-07 08:09:10,5"), transfer.Options{})
	file := lines("Alias,Date,Clicks", "a,2024-01-02,30", "b,2024-01-02,1", "a,2023-12-31,11", "none,2024-01-02,7",
		"a,2999-01-01,1", "a,yesterday,1", "a,2024-01-05,-1", "a,2024-01-05,", "b,2024-01-02,2", ",2024-01-01,4")
	for range 2 {
		preview, report := f.with(t, file, transfer.Options{Source: "yourls"})
		for _, r := range []transfer.Report{preview, report} {
			counts(t, r, 0, 2, 8)
			testkit.Equal(t, "clicks", r.Clicks, 41)
		}
		var problems []string
		for _, e := range report.Errors {
			problems = append(problems, e.Column+": "+e.Reason)
		}
		const none, date, number, twice = "Alias: You have no link with this alias on this domain: import the links first.",
			"Date: The date must be like 2026-12-31, and not after today.",
			"Clicks: The clicks must be a number from 0 to a billion.", "Date: The file has a day of this link twice."
		testkit.Equal(t, "problems", problems, []string{twice, none, date, date, number, number, twice, none})
		testkit.Equal(t, "history of a", f.history(t, "a", "yourls"), []schema.DayCount{{Date: "2023-12-31", Total: 11},
			{Date: "2024-01-02", Total: 30}})
		testkit.Equal(t, "history of b", f.history(t, "b", "yourls"), []schema.DayCount{{Date: "2013-06-07", Total: 5}})
	}
}

// TestClicksOfManySources fills the sources of a link. Those of other links are imported.
func TestClicksOfManySources(t *testing.T) {
	f := newFixture(t)
	file := lines("keyword,url,timestamp,clicks", "a,https://example.com/a,2013-06-07 08:09:10,41")
	for _, source := range []string{"one", "two", "three", "four", "five"} {
		f.with(t, file, transfer.Options{Source: source})
	}
	more := file + lines("b,https://example.com/b,2013-06-07 08:09:10,5")
	_, report := f.with(t, more, transfer.Options{Source: "six"})
	counts(t, report, 1, 1, 0)
	testkit.Equal(t, "clicks", report.Clicks, 5)
	testkit.Equal(t, "history of b", f.history(t, "b", "six"), []schema.DayCount{{Date: "2013-06-07", Total: 5}})
	_, report = f.with(t, lines("alias,date,clicks", "a,20240102,30", "b,20240102,1"), transfer.Options{Source: "six"})
	counts(t, report, 0, 1, 1)
	testkit.Equal(t, "history of b by day", f.history(t, "b", "six"), []schema.DayCount{{Date: "2024-01-02", Total: 1}})
}

func TestMappedColumns(t *testing.T) {
	f := newFixture(t)
	file := lines("Back half,Where to,Ends on,Website", "Sale,https://example.com/a,2099-01-01,https://example.org/")
	chosen := map[string]string{"alias": "Back half", "long_url": "where-to", "expires_at": "Ends on"}
	preview, _ := f.with(t, file, transfer.Options{Map: chosen, Ignore: []string{"website"}})
	testkit.Equal(t, "columns", preview.Columns, []transfer.Column{{Name: "Back half", Field: "custom_alias"},
		{Name: "Where to", Field: "long_url"}, {Name: "Ends on", Field: "expires_at"}, {Name: "Website"}})
	link := f.link(t, 0, "Sale")
	testkit.Equal(t, "end", link.ExpiresAt.UTC(), utc("2099-01-01T00:00:00Z"))
	for name, c := range map[string]struct {
		opts transfer.Options
		says string
	}{
		"without a map":      {transfer.Options{}, "The columns Back half, Where to, Ends on, Website are not known"},
		"without the target": {transfer.Options{Map: map[string]string{"alias": "Back half"}}, "are not known"},
		"without a column":   {transfer.Options{Map: map[string]string{"long_url": "Where to"}}, "looks like an alias"},
		"of a wrong field": {transfer.Options{Map: map[string]string{"long_url": "Where to", "x": "Website"}},
			`to "x", but to alias`},
		"of a missing column": {transfer.Options{Map: map[string]string{"long_url": "URL"}}, "no column URL, but Back half"},
		"of an ignored column": {transfer.Options{Map: chosen, Ignore: []string{"Back half"}},
			"Back half is mapped or ignored twice"},
		"ignores what is not in": {transfer.Options{Map: chosen, Ignore: []string{"x"}}, "no column x, but Back half"},
		"of one column twice": {transfer.Options{Map: map[string]string{"long_url": "Where to", "alias": "Where to"}},
			"Where to is mapped or ignored twice"},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := f.Preview(t.Context(), f.account, strings.NewReader(file), c.opts)
			if schema.ErrorCode(err) != schema.CodeInvalid || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
			testkit.Equal(t, "columns", len(report.Columns), 4)
		})
	}
	t.Run("of a known file take the place of its own", func(t *testing.T) {
		f.with(t, lines("keyword,url,title", "https://example.com/b,k2,T"),
			transfer.Options{Map: map[string]string{"alias": "url", "long_url": "keyword"}})
		testkit.Equal(t, "target", f.link(t, 0, "k2").URL, "https://example.com/b")
	})
}
