package transfer_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"linkstream/api/transfer"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// exports holds a file of each format, and its links without the fields that the store chooses. behaviourCells are the
// cells of a link's rules, variants, card and limit.
const behaviourCells = `"[{""name"":""a"",""if"":{""os"":[""iOS""],""from"":""2030-01-01T00:00:00+00:00""},` +
	`""url"":""https://example.com/i""}]","[{""name"":""x"",""url"":""https://example.com/x"",""weight"":99},` +
	`{""name"":""y"",""url"":""https://example.com/y"",""weight"":1}]","{""title"":""T"",""description"":"""",` +
	`""image"":null}",1000`

var exports = map[string]struct {
	format transfer.Format
	file   string
	links  []schema.Link
	notes  []string // words of them
}{
	"linkstream": {transfer.Linkstream, lines(
		`short_url,alias,domain,long_url,title,tags,is_active,created_at,expires_at,expired_url,forward_query,rules,`+
			`variants,card,max_clicks,clicks`,
		`https://sho.rt/aBc1234,aBc1234,,https://example.com/a?x=1&y=2,"A, ""quoted"" title",go news,true,`+
			`2024-02-29T12:00:00+02:00,`+
			`2099-01-02T03:04:05+00:00,https://example.com/over,true,`+behaviourCells+`,12`,
		`https://go.example.com/-x,'-x,go.example.com,https://example.com/b,'=1+1,,false,,,,false,,,,,0`,
	), []schema.Link{
		{Hash: "aBc1234", URL: "https://example.com/a?x=1&y=2", Title: `A, "quoted" title`, Tags: []string{"go", "news"},
			Active:    true,
			CreatedAt: utc("2024-02-29T10:00:00Z"), ExpiresAt: utc("2099-01-02T03:04:05Z"),
			ExpiredURL:   "https://example.com/over",
			ForwardQuery: true, Behaviour: &schema.Behaviour{
				Rules: []schema.Rule{{Name: "a", If: schema.Conditions{OS: []string{"iOS"}, From: 1893456000},
					URL: "https://example.com/i"}},
				Variants: []schema.Variant{{Name: "x", URL: "https://example.com/x", Weight: 99},
					{Name: "y", URL: "https://example.com/y", Weight: 1}},
				Shares: strings.Repeat("a", 99) + "b", Card: &schema.Card{Title: "T"}, MaxClicks: 1000}},
		{Host: "go.example.com", Hash: "-x", URL: "https://example.com/b", Title: "=1+1"},
	}, []string{"Counts"}},
	"a spreadsheet": {transfer.Linkstream, lines("URL;Custom Alias", "https://example.com/a;one",
		"https://example.com/b;two"),
		[]schema.Link{{Hash: "one", URL: "https://example.com/a", Active: true},
			{Hash: "two", URL: "https://example.com/b", Active: true}}, nil},
	"shlink-web-client": {transfer.Shlink, lines(
		`"createdAt","domain","shortCode","shortUrl","longUrl","title","tags","visits"`,
		`"2022-01-15T09:30:00+01:00","go.example.com","aB3","https://go.example.com/aB3","https://example.com/a","It's",`+
			`"Summer sale|news","7"`,
		`"2022-01-15T09:30:00+01:00","s.test","x","https://s.test/x","https://example.com/b","","","0"`,
	), []schema.Link{
		{Host: "go.example.com", Hash: "aB3", URL: "https://example.com/a", Title: "It's",
			Tags:      []string{"news", "summer-sale"},
			CreatedAt: utc("2022-01-15T08:30:00Z"), Active: true},
		{Hash: "x", URL: "https://example.com/b", CreatedAt: utc("2022-01-15T08:30:00Z"), Active: true},
	}, []string{"Counts", "Tags"}},
	"shlink's command line": {transfer.Shlink, lines("Long URL;Tags;Domain;Short code;Title",
		"https://example.com/a;a|b;;abc;T"),
		[]schema.Link{{Hash: "abc", URL: "https://example.com/a", Title: "T", Tags: []string{"a", "b"}, Active: true}}, nil},
	"kutt": {transfer.Kutt, lines(
		`id,address,banned,created_at,description,domain,expire_in,link,password,target,updated_at,visit_count`,
		`5d0c,Qw9,false,2021-03-04T05:06:07.890Z,hello,,2099-01-01T00:00:00.000Z,https://kutt.it/Qw9,false,`+
			`https://example.com/a,2021-03-04T05:06:07.890Z,3`,
		`5d0d,bad,true,2021-03-04 05:06:07,,go.example.com,,https://go.example.com/bad,,https://example.com/b,,0`,
	), []schema.Link{
		{Hash: "Qw9", URL: "https://example.com/a", Title: "hello", CreatedAt: utc("2021-03-04T05:06:07Z"),
			ExpiresAt: utc("2099-01-01T00:00:00Z"), Active: true},
		{Host: "go.example.com", Hash: "bad", URL: "https://example.com/b", CreatedAt: utc("2021-03-04T05:06:07Z")},
	}, []string{"Counts", "banned"}},
	"YOURLS's table": {transfer.YOURLS, lines(
		`"keyword","url","title","timestamp","ip","clicks"`,
		`"1","https://example.com/a","Line one`, `line two","2013-06-07 08:09:10","192.0.2.1","41"`,
	),
		[]schema.Link{{Hash: "1", URL: "https://example.com/a", Title: "Line one line two",
			CreatedAt: utc("2013-06-07T08:09:10Z"), Active: true}}, []string{"Counts", "title"}},
	"YOURLS-Import-Export": {transfer.YOURLS, "source,target,hits\r\n/ozh/,https://example.com/a,\"\"\r\n",
		[]schema.Link{{Hash: "ozh", URL: "https://example.com/a", Active: true}}, nil},
	"bitly": {transfer.Bitly, lines(
		`Link,Custom Link,Date created,Title,Destination URL,Engagements,Status`,
		`https://bit.ly/AbC123,https://go.example.com/Launch,2026-06-01T08:30:00Z,"Launch, ""Summer""",`+
			`https://example.com/p?c=s,1234,Active`,
		`https://bit.ly/AbC124,,2026-06-01 08:30,,https://example.com/q,0,Archived`,
	), []schema.Link{
		{Host: "go.example.com", Hash: "Launch", URL: "https://example.com/p?c=s", Title: `Launch, "Summer"`,
			CreatedAt: utc("2026-06-01T08:30:00Z"), Active: true},
		{Hash: "AbC124", URL: "https://example.com/q", CreatedAt: utc("2026-06-01T08:30:00Z"), Active: true},
	}, []string{"Counts"}},
	"bitly as others import it": {transfer.Bitly, lines(
		`Bitlink,Title,Long URL,Tags,Created,Total Clicks,Campaign,Archived`,
		`bit.ly/3abc,Launch,https://example.com/a,"One, two",2020-10-26,42,Q1,false`,
	), []schema.Link{{Hash: "3abc", URL: "https://example.com/a", Title: "Launch", Tags: []string{"one", "two"},
		CreatedAt: utc("2020-10-26T00:00:00Z"), Active: true}}, []string{"Counts", "Tags"}},
	"bitly's API of version 3": {transfer.Bitly, lines(
		`"keyword_link","link","tags","long_url"`,
		`"http://bit.ly/mine","http://bit.ly/3abc","","https://example.com/a"`,
		`"","http://bit.ly/3abd","","https://example.com/b"`,
	), []schema.Link{{Hash: "mine", URL: "https://example.com/a", Active: true},
		{Hash: "3abd", URL: "https://example.com/b", Active: true}}, nil},
	"bitly's API": {transfer.Bitly, lines(
		`long_url,custom_bitlink,title,archived,tags,created_at`,
		`https://example.com/a,bit.ly/abc-1,T,false,"one,Two",2020-10-26T17:20:40+0000`,
	), []schema.Link{{Hash: "abc-1", URL: "https://example.com/a", Title: "T", Tags: []string{"one", "two"},
		CreatedAt: utc("2020-10-26T17:20:40Z"), Active: true}}, []string{"Tags"}},
	"bitly's API of version 4": {transfer.Bitly, lines(
		`link,long_url,custom_bitlinks`,
		`https://bit.ly/3abc,https://example.com/a,"[""https://bit.ly/One"",""https://bit.ly/two""]"`,
		`https://bit.ly/3abd,https://example.com/b,[]`,
		`https://bit.ly/3abe,https://example.com/c,https://bit.ly/three bit.ly/four`,
	), []schema.Link{{Hash: "One", URL: "https://example.com/a", Active: true},
		{Hash: "two", URL: "https://example.com/a", Active: true},
		{Hash: "3abd", URL: "https://example.com/b", Active: true}, {Hash: "three", URL: "https://example.com/c",
			Active: true},
		{Hash: "four", URL: "https://example.com/c", Active: true}}, nil},
}

func utc(s string) time.Time {
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return at.UTC()
}

func TestFormats(t *testing.T) {
	for name, export := range exports {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			preview := f.previews(t, export.file)
			if preview.Format != export.format {
				t.Errorf("recognized as %q", preview.Format)
			}
			counts(t, preview, int64(len(export.links)), 0, 0)
			if total := f.total(t); total != 0 {
				t.Fatalf("the preview created %d links", total)
			}
			began := time.Now().Add(-time.Second)
			report := f.imports(t, export.file)
			if report.Bytes != int64(len(export.file)) {
				t.Errorf("%d of %d bytes read", report.Bytes, len(export.file))
			}
			report.Bytes = preview.Bytes
			if !reflect.DeepEqual(report, preview) {
				t.Errorf("imported\n%+v\npreviewed\n%+v", report, preview)
			}
			for i, want := range export.links {
				if want.Host != "" {
					want.DomainID = f.domain
				}
				got := f.link(t, want.DomainID, want.Hash)
				if want.CreatedAt.IsZero() && got.CreatedAt.After(began) {
					got.CreatedAt = time.Time{}
				}
				got.CreatedAt, got.ExpiresAt = got.CreatedAt.UTC(), got.ExpiresAt.UTC()
				want.ID, want.AccountID, want.Ordinal, want.UpdatedAt = got.ID, f.account, got.Ordinal, got.UpdatedAt
				if !reflect.DeepEqual(got, want) {
					t.Errorf("stored\n%+v\nwant\n%+v", got, want)
				}
				if row := report.First[i]; row.ShortURL != f.shortener.ShortURL(got) || row.LongURL != got.URL ||
					row.Active != got.Active {
					t.Errorf("row %+v of link %+v", row, got)
				}
			}
			if len(report.Notes) != len(export.notes) {
				t.Fatalf("notes %+v, want %q", report.Notes, export.notes)
			}
			for i, word := range export.notes {
				if !strings.Contains(report.Notes[i].Text, word) && !strings.Contains(report.Notes[len(export.notes)-1-i].Text,
					word) {
					t.Errorf("notes %+v, want %q", report.Notes, export.notes)
				}
			}
			counts(t, f.imports(t, export.file), 0, int64(len(export.links)), 0)
		})
	}
}

func TestUnknownFiles(t *testing.T) {
	f := newFixture(t)
	for name, c := range map[string]struct {
		file   string
		format transfer.Format
		says   string
	}{
		"empty":                       {"", "", "no first line"},
		"without a first line":        {"https://example.com/,abc\n", "", "must name the columns"},
		"without a long URL":          {"alias,title\na,b\n", "", "alias, title"},
		"another format than wanted":  {"alias,long_url\n", transfer.Kutt, "not those of an export of kutt"},
		"UTF-16":                      {"\xff\xfel\x00o\x00", "", "UTF-16"},
		"names that are not UTF-8":    {"\xe4,\xf6\n", "", "not UTF-8"},
		"what its format needs":       {"alias,long_url\n", transfer.Bitly, "which has link and destinationurl, or"},
		"a workbook":                  {"PK\x03\x04\x14\x00", "", "not CSV but a workbook"},
		"a workbook of old":           {"\xd0\xcf\x11\xe0\xa1\xb1", "", "not CSV but a workbook"},
		"compressed":                  {"\x1f\x8b\x08\x00", "", "Unpack it first"},
		"JSON":                        {"\n{\"links\": []}", "", "not CSV but JSON"},
		"a list in JSON":              {"[{\"long_url\": 1}]", "", "not CSV but JSON"},
		"a web page":                  {"<!DOCTYPE html>\n", "", "not CSV but a web page"},
		"very many columns":           {strings.Repeat("long_url,", 100) + "\n", "", "not known"},
		"a very long name":            {strings.Repeat("x", 5000) + "\n", "", strings.Repeat("x", 64) + "…"},
		"an unclosed quote":           {"long_url\n\"" + strings.Repeat("x\n", 100_000), "", "longer than 64 KiB"},
		"an unclosed quote in line 1": {"\"" + strings.Repeat("x\n", 200_000), "", "no first line"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.Preview(t.Context(), f.account, strings.NewReader(c.file), transfer.Options{Format: c.format})
			if schema.ErrorCode(err) != schema.CodeInvalid || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
		})
	}
	_, err := transfer.ParseFormat("excel")
	if schema.ErrorCode(err) != schema.CodeInvalid {
		t.Errorf("%v", err)
	}
	for _, format := range transfer.Formats() {
		got, err := transfer.ParseFormat(string(format))
		testkit.Must(t, err)
		if got != format {
			t.Errorf("%q is read as %q", format, got)
		}
	}
}
