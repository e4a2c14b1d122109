package transfer_test

import (
	"encoding/binary"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf16"

	"linkstream/api/csvfile"
	"linkstream/api/links"
	"linkstream/api/transfer"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// exports holds a file of each format, and its links without the fields that the store chooses. behaviourCells are the
// cells of a link's rules, variants, card, limit and path mode.
const behaviourCells = `"[{""name"":""a"",""if"":{""os"":[""iOS""],""from"":""2030-01-01T00:00:00+00:00""},` +
	`""url"":""https://example.com/i""}]","[{""name"":""x"",""url"":""https://example.com/x"",""weight"":99},` +
	`{""name"":""y"",""url"":""https://example.com/y"",""weight"":1}]","{""title"":""T"",""description"":"""",` +
	`""image"":null}",1000,append`

type exported struct {
	format transfer.Format
	file   string
	links  []schema.Link
	notes  []string // words of them
}

var exports = map[string]exported{
	"linkstream": {transfer.Linkstream, lines(
		`short_url,alias,domain,long_url,title,tags,is_active,created_at,expires_at,expired_url,forward_query,rules,`+
			`variants,card,max_clicks,path_mode,external_id,clicks`,
		`https://sho.rt/aBc1234,aBc1234,,https://example.com/a?x=1&y=2,"A, ""quoted"" title",go news,true,`+
			`2024-02-29T12:00:00+02:00,`+
			`2099-01-02T03:04:05+00:00,https://example.com/over,true,`+behaviourCells+`,order/1%,12`,
		`https://go.example.com/-x,'-x,go.example.com,https://example.com/b,'=1+1,,false,,,,false,,,,,,'=1,0`,
	), []schema.Link{
		{Hash: "aBc1234", URL: "https://example.com/a?x=1&y=2", Title: `A, "quoted" title`, Tags: []string{"go", "news"},
			Active:    true,
			CreatedAt: utc("2024-02-29T10:00:00Z"), ExpiresAt: utc("2099-01-02T03:04:05Z"),
			ExpiredURL:   "https://example.com/over",
			ForwardQuery: true, Behaviour: &schema.Behaviour{PathMode: schema.PathAppend,
				Rules: []schema.Rule{{Name: "a", If: schema.Conditions{OS: []string{"iOS"}, From: 1893456000},
					URL: "https://example.com/i"}},
				Variants: []schema.Variant{{Name: "x", URL: "https://example.com/x", Weight: 99},
					{Name: "y", URL: "https://example.com/y", Weight: 1}},
				Shares: strings.Repeat("a", 99) + "b", Card: &schema.Card{Title: "T"}, MaxClicks: 1000},
			ExternalID: "order/1%"},
		{Host: "go.example.com", Hash: "-x", URL: "https://example.com/b", Title: "=1+1", ExternalID: "=1"},
	}, []string{"Clicks"}},
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
	}, []string{"Clicks", "Tags"}},
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
	}, []string{"Clicks", "banned"}},
	"YOURLS's table": {transfer.YOURLS, lines(
		`"keyword","url","title","timestamp","ip","clicks"`,
		`"1","https://example.com/a","Line one`, `line two","2013-06-07 08:09:10","192.0.2.1","41"`,
	),
		[]schema.Link{{Hash: "1", URL: "https://example.com/a", Title: "Line one line two",
			CreatedAt: utc("2013-06-07T08:09:10Z"), Active: true}}, []string{"Clicks", "title"}},
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
	}, []string{"Clicks"}},
	"bitly as others import it": {transfer.Bitly, lines(
		`Bitlink,Title,Long URL,Tags,Created,Total Clicks,Campaign,Archived`,
		`bit.ly/3abc,Launch,https://example.com/a,"One, two",2020-10-26,42,Q1,false`,
	), []schema.Link{{Hash: "3abc", URL: "https://example.com/a", Title: "Launch", Tags: []string{"one", "two"},
		CreatedAt: utc("2020-10-26T00:00:00Z"), Active: true}}, []string{"Clicks", "Tags"}},
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

// services are files of services whose columns were looked up in November 2026, with every column of theirs.
var services = map[string]exported{
	"dub": {transfer.Dub, lines(
		`id,domain,key,url,title,description,image,shortLink,tags,clicks,leads,sales,createdAt,updatedAt,expiresAt,`+
			`expiredUrl,archived,utm_source,externalId`,
		`link_1,go.example.com,Promo/2026,https://example.com/a?utm_source=x,Launch,About,,`+
			`https://go.example.com/Promo/2026,"News,Summer sale",42,0,0,2024-02-29T10:00:00.000Z,`+
			`2024-03-01T10:00:00.000Z,2099-01-01T00:00:00.000Z,`+
			`https://example.com/over,false,x,`,
	), []schema.Link{{Host: "go.example.com", Hash: "Promo/2026", URL: "https://example.com/a?utm_source=x",
		Title: "Launch", Tags: []string{"news", "summer-sale"}, CreatedAt: utc("2024-02-29T10:00:00Z"),
		ExpiresAt: utc("2099-01-01T00:00:00Z"), ExpiredURL: "https://example.com/over", Active: true},
	}, []string{"Clicks", "Tags"}},
	"dub's page": {transfer.Dub, lines(
		`Short link,Destination URL,Clicks,Created at,Updated at,Tags`,
		`dub.sh/abc,https://example.com/a,7,2024-02-29T10:00:00.000Z,,`,
	), []schema.Link{{Hash: "abc", URL: "https://example.com/a", CreatedAt: utc("2024-02-29T10:00:00Z"), Active: true}},
		[]string{"Clicks"}},
	"dub's names": {transfer.Dub, lines(
		`link,url,title,clicks,createdAt,updatedAt,tags,archived,expiresAt,expiredUrl,disabledAt`,
		`https://dub.sh/abc,https://example.com/a,null,7,2024-02-29T10:00:00.000Z,null,"One, two",false,null,null,2024-03-01`,
	), []schema.Link{{Hash: "abc", URL: "https://example.com/a", Tags: []string{"one", "two"},
		CreatedAt: utc("2024-02-29T10:00:00Z")}}, []string{"Tags", "off", "Clicks"}},
	"Rebrandly's API": {transfer.Rebrandly, `[{"id":"f1","slashtag":"burn10M","destination":"https://example.com/a",` +
		`"domain":{"id":"8f","fullName":"go.example.com"},"shortUrl":"go.example.com/burn10M","title":"","clicks":0}]`,
		[]schema.Link{{Host: "go.example.com", Hash: "burn10M", URL: "https://example.com/a", Active: true}}, nil},
	"chhoto-url's table": {transfer.Chhoto, lines(`id,short_url,long_url,hits,expiry_time,notes`,
		`1,a-1,https://example.com/a,0,,seen`),
		[]schema.Link{{Hash: "a-1", URL: "https://example.com/a", Title: "seen", Active: true}}, nil},
	"Rebrandly": {transfer.Rebrandly, lines(
		`id,title,slashtag,destination,shortUrl,domain,clicks,lastClickAt,favourite,forwardParameters,createdAt,updatedAt`,
		`f1,Burn,burn10M,https://example.com/a,go.example.com/burn10M,go.example.com,42,2016-07-14T00:00:00.000Z,false,true,`+
			`2016-07-13T10:54:12.000Z,`,
	), []schema.Link{{Host: "go.example.com", Hash: "burn10M", URL: "https://example.com/a", Title: "Burn",
		ForwardQuery: true, CreatedAt: utc("2016-07-13T10:54:12Z"), Active: true}}, []string{"Clicks"}},
	"Short.io": {transfer.ShortIO, lines(
		`Original URL,Short URL,Path,Title,Tags,Clicks,Created At`,
		`https://example.com/a,https://go.example.com/Sale.html,Sale.html,Sale,"a,b",0,2021-03-04T05:06:07.000Z`,
	), []schema.Link{{Host: "go.example.com", Hash: "Sale.html", URL: "https://example.com/a", Title: "Sale",
		Tags: []string{"a", "b"}, CreatedAt: utc("2021-03-04T05:06:07Z"), Active: true}}, nil},
	"Sink": {transfer.Sink, lines(
		`slug,url,comment,expiration,createdAt`,
		`imp24,https://example.com/a,for the fair,4070908800,1614834367`,
		`two,https://example.com/b,,,1614834367`,
	), []schema.Link{{Hash: "imp24", URL: "https://example.com/a", Title: "for the fair",
		CreatedAt: utc("2021-03-04T05:06:07Z"), ExpiresAt: utc("2099-01-01T00:00:00Z"), Active: true},
		{Hash: "two", URL: "https://example.com/b", CreatedAt: utc("2021-03-04T05:06:07Z"), Active: true}}, nil},
	"Sink's JSON": {transfer.Sink, `{"version":"1.0","exportedAt":"2026-01-01T00:00:00Z","count":2,"links":[
		{"id":"a","slug":"imp24","url":"https://example.com/a","createdAt":1614834367,"updatedAt":1614834367},
		{"id":"b","slug":"two","url":"https://example.com/b","comment":"=1+1","createdAt":1614834367,"expiration":4070908800,
			"title":"A card","image":null}],"cursor":null,"list_complete":true}`,
		[]schema.Link{{Hash: "imp24", URL: "https://example.com/a", CreatedAt: utc("2021-03-04T05:06:07Z"), Active: true},
			{Hash: "two", URL: "https://example.com/b", Title: "=1+1", CreatedAt: utc("2021-03-04T05:06:07Z"),
				ExpiresAt: utc("2099-01-01T00:00:00Z"), Active: true}}, nil},
	"chhoto-url": {transfer.Chhoto, lines(`short,long,hits,expiry`, `a-1,https://example.com/a,5,0`,
		`b-2,https://example.com/b,0,4070908800`),
		[]schema.Link{{Hash: "a-1", URL: "https://example.com/a", Active: true},
			{Hash: "b-2", URL: "https://example.com/b", ExpiresAt: utc("2099-01-01T00:00:00Z"), Active: true}},
		[]string{"Clicks"}},
	"chhoto-url's API": {transfer.Chhoto, `[{"shortlink":"a-1","longlink":"https://example.com/a","hits":5,` +
		`"expiry_time":0,"notes":null}]`, []schema.Link{{Hash: "a-1", URL: "https://example.com/a", Active: true}},
		[]string{"Clicks"}},
}

func utc(s string) time.Time {
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return at.UTC()
}

func TestFormats(t *testing.T) {
	all := maps.Clone(exports)
	maps.Copy(all, services)
	for name, export := range all {
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
				want.ID, want.AccountID, want.Ordinal = got.ID, f.account, got.Ordinal
				want.UpdatedAt, want.Version = got.UpdatedAt, 1
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

// utf16File returns a file in UTF-16.
func utf16File(text string, bigEndian bool) string {
	var file []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		if bigEndian {
			file = binary.BigEndian.AppendUint16(file, unit)
		} else {
			file = binary.LittleEndian.AppendUint16(file, unit)
		}
	}
	return string(file)
}

// TestFilesOfAnySystem reads the same rows with each end of lines, in each encoding.
func TestFilesOfAnySystem(t *testing.T) {
	f := newFixture(t)
	for _, end := range []string{"\n", "\r\n", "\r", "\r\r\n", "\n\r", "\r\n\r\n"} {
		for _, last := range []string{"", end, end + end, "\r", "\n"} {
			for _, separator := range []string{",", ";", "\t"} {
				text := strings.Join([]string{"alias,long_url,title", "one,https://example.com/1,Öl", "two,https://example.com/2,",
					`three,https://example.com/3,"a` + end + `b"`}, end) + last
				text = strings.ReplaceAll(text, ",", separator)
				for encoding, file := range map[string]string{
					"UTF-8": text, "UTF-8 with a mark": csvfile.BOM + text, "UTF-8 with marks": csvfile.BOM + csvfile.BOM + text,
					"a named separator": "sep=" + separator + end + text, "UTF-16": utf16File("\ufeff"+text, false),
					"UTF-16, big-endian": utf16File("\ufeff"+text, true), "UTF-16 without a mark": utf16File(text, false),
					"UTF-16, big-endian, without a mark": utf16File(text, true),
				} {
					for _, read := range []io.Reader{strings.NewReader(file), iotest.OneByteReader(strings.NewReader(file))} {
						report, err := f.Preview(t.Context(), f.account, read, transfer.Options{})
						if err != nil || report.Created != 3 || report.Rows != 3 {
							t.Fatalf("lines end with %q, the last with %q, %s: %+v, %v", end, last, encoding, report.Progress, err)
						}
						var rows []string
						for _, row := range report.First {
							rows = append(rows, row.Alias+" "+row.LongURL+" "+row.Title)
						}
						want := []string{"one https://example.com/1 Öl", "two https://example.com/2 ", "three https://example.com/3 a b"}
						if !slices.Equal(rows, want) {
							t.Errorf("lines end with %q, the last with %q, %s: %q", end, last, encoding, rows)
						}
					}
				}
			}
		}
	}
	var lines []int
	report, err := f.Preview(t.Context(), f.account, strings.NewReader("alias,long_url\rone,x\r\ntwo,y\n\rthree,z\r"),
		transfer.Options{OnError: func(e transfer.RowError) { lines = append(lines, e.Line) }})
	testkit.Must(t, err)
	if counts(t, report, 0, 0, 3); !slices.Equal(lines, []int{2, 3, 5}) {
		t.Errorf("errors in the lines %d", lines)
	}
}

const badAlias = "The alias must have 1 to 128 characters of A-Z a-z 0-9 . _ ~ - and /, without / or . first or " +
	"last, and with no part between slashes that is empty, . or .."

// TestAliasesOfFiles has the forms in which a file names an alias.
func TestAliasesOfFiles(t *testing.T) {
	f := newFixture(t)
	_, err := f.shortener.Create(t.Context(), links.Request{AccountID: f.other, LongURL: "https://example.com/",
		CustomAlias: new("taken")})
	testkit.Must(t, err)
	const taken, none, invalid = "The alias is already in use on this domain.", "The short URL has no alias.", badAlias
	for _, c := range []struct{ head, cells, address, problem string }{
		{"short_url", "imp24", "https://sho.rt/imp24", ""},
		{"short_url", "/imp24", "https://sho.rt/imp24", ""},
		{"short_url", "/imp24/", "https://sho.rt/imp24", ""},
		{"short_url", "imp24/", "https://sho.rt/imp24", ""},
		{"short_url", "imp24?utm_source=x", "https://sho.rt/imp24", ""},
		{"short_url", "Imp-24_#top", "https://sho.rt/Imp-24_", ""},
		{"short_url", "sho.rt/imp24", "https://sho.rt/imp24", ""},
		{"short_url", "SHO.RT/imp24/", "https://sho.rt/imp24", ""},
		{"short_url", "sho.rt:443/imp24", "https://sho.rt/imp24", ""},
		{"short_url", "//sho.rt/imp24", "https://sho.rt/imp24", ""},
		{"short_url", "sho.rt//imp24//", "https://sho.rt/imp24", ""},
		{"short_url", "sho.rt/imp24?u=https://bit.ly/x", "https://sho.rt/imp24", ""},
		{"short_url", "imp24#https://bit.ly/x", "https://sho.rt/imp24", ""},
		{"short_url", "https://sho.rt/imp24", "https://sho.rt/imp24", ""},
		{"short_url", "HTTPS://sho.rt//imp24", "https://sho.rt/imp24", ""},
		{"short_url", "https://sho.rt/imp24?a=/b#/c", "https://sho.rt/imp24", ""},
		{"short_url", "https://sho.rt/imp24/?a=b", "https://sho.rt/imp24", ""},
		{"short_url", "https://sho.rt/%69mp24", "https://sho.rt/imp24", ""},
		{"short_url", "%69mp24", "https://sho.rt/imp24", ""},
		{"short_url", "https://go.example.com/imp24", "https://go.example.com/imp24", ""},
		{"short_url", "go.example.com/imp24?x", "https://go.example.com/imp24", ""},
		{"short_url", "https://bit.ly/imp24", "https://sho.rt/imp24", ""},
		{"short_url", "bit.ly/imp24/", "https://sho.rt/imp24", ""},
		{"short_url", "http://localhost/imp24", "https://sho.rt/imp24", ""},
		{"short_url", "http://[2001:db8::1]:8080/imp24", "https://sho.rt/imp24", ""},
		{"bitlink", "bit.ly/imp24", "https://sho.rt/imp24", ""},
		{"short link", "bit.ly/imp24", "https://sho.rt/imp24", ""},
		{"address,link,target", ",https://kutt.it/imp24,https://example.com/", "https://sho.rt/imp24", ""},
		{"alias,short_url", ",https://sho.rt/imp24", "https://sho.rt/imp24", ""},
		{"alias,short_url", "mine,https://sho.rt/imp24", "https://sho.rt/mine", ""},
		{"alias,short_url", "mine,bit.ly", "https://sho.rt/mine", ""},
		{"domain,short_url", "go.example.com,imp24", "https://go.example.com/imp24", ""},
		{"domain,short_url", ",https://go.example.com/imp24", "https://sho.rt/imp24", ""},
		{"alias", "/imp24/", "https://sho.rt/imp24", ""},
		{"alias", "%69mp24", "https://sho.rt/imp24", ""},
		{"alias", "https://sho.rt/imp24?x", "https://sho.rt/imp24", ""},
		{"custom_alias", "https://go.example.com/imp24/", "https://go.example.com/imp24", ""},
		{"hash", "imp24", "https://sho.rt/imp24", ""},
		{"Short code", "imp24", "https://sho.rt/imp24", ""},
		{"keyword", "imp24", "https://sho.rt/imp24", ""},
		{"short_url", "https://sho.rt/a/B.html/?x", "https://sho.rt/a/B.html", ""},
		{"short_url", "https://sho.rt/a/%62", "https://sho.rt/a/b", ""},
		{"alias", "/a/b/", "https://sho.rt/a/b", ""},
		{"alias", "12345678901234567890~", "https://sho.rt/12345678901234567890~", ""},

		{"short_url", "https://sho.rt/", "", none}, {"short_url", "https://sho.rt", "", none},
		{"short_url", "sho.rt", "", none}, {"short_url", "bit.ly/", "", none}, {"short_url", "https://sho.rt/?x", "", none},
		{"short_url", "/", "", none}, {"short_url", "#imp24", "", none}, {"short_url", "https://", "", none},
		{"alias", "https://sho.rt/", "", none}, {"alias,short_url", ",sho.rt", "", none},
		{"short_url", "https://sho.rt/a//b", "", invalid}, {"short_url", "https://sho.rt/a%2Fb", "", invalid},
		{"alias", "a%2fb", "", invalid}, {"short_url", "https://sho.rt/%zz", "", invalid},
		{"short_url", "imp 24", "", invalid}, {"short_url", "https://sho.rt/imp24+", "", invalid},
		{"short_url", "https://sho.rt/" + strings.Repeat("0", 129), "", invalid}, {"short_url", "ä", "", invalid},
		{"alias", "sho.rt/imp24", "", "The alias begins with the host of short links."}, {"alias", "a/../b", "", invalid},
		{"short_url", "sho.rt/taken", "", taken}, {"short_url", "taken", "", taken}, {"alias", "/taken", "", taken},
		{"short_url", "https://bit.ly/taken?x", "", taken}, {"short_url", "api", "", "The alias is reserved."},
		{"short_url", "https://sho.rt/Dashboard", "", "The alias is reserved."},
	} {
		file := lines(c.head+",long_url", c.cells+",https://example.com/")
		if strings.Contains(c.head, "target") {
			file = lines(c.head, c.cells)
		}
		report := f.previews(t, file)
		if row := report.First[0]; c.problem == "" && (row.Outcome != transfer.Created || row.ShortURL != c.address) {
			t.Errorf("%s %q: %+v, %+v, want %s", c.head, c.cells, row, report.Errors, c.address)
		}
		if c.problem != "" && (len(report.Errors) != 1 || report.Errors[0].Reason != c.problem || report.Failed != 1) {
			t.Errorf("%s %q: %+v, %+v, want %q", c.head, c.cells, report.First, report.Errors, c.problem)
		}
	}
}

func TestUnknownFiles(t *testing.T) {
	f := newFixture(t)
	for name, c := range map[string]struct {
		file   string
		format transfer.Format
		says   string
	}{
		"empty":                       {"", "", "is empty"},
		"white space":                 {" \r\r\n\t\n", "", "is empty"},
		"a byte order mark alone":     {"\xef\xbb\xbf", "", "is empty"},
		"UTF-16's byte order mark":    {"\xff\xfe", "", "is empty"},
		"a heading without an end":    {"alias,long_url", "", "no rows"},
		"a heading":                   {"alias,long_url\r", "", "no rows"},
		"a heading and empty lines":   {"alias,long_url\r\n\r\n\n\r", "", "no rows"},
		"a heading and empty cells":   {"alias,long_url\n,\n\" \",\n", "", "no rows"},
		"a heading in UTF-16":         {utf16File("alias,long_url\r\n", false), "", "no rows"},
		"a separator alone":           {"sep=;\r", "", "no first line"},
		"NUL":                         {"\x00\x00\x00\x00", "", "not text"},
		"NUL behind text":             {"alias,long_url\x00\nx,y\n", "", "not text"},
		"UTF-32":                      {"\xff\xfe\x00\x00l\x00\x00\x00o\x00\x00\x00\n\x00\x00\x00", "", "not text"},
		"without a first line":        {"https://example.com/,abc\n", "", "must name the columns"},
		"without a long URL":          {"alias,title\na,b\n", "", "alias, title"},
		"another format than wanted":  {"alias,long_url\na,b\n", transfer.Kutt, "not those of an export of kutt"},
		"UTF-16":                      {"\xff\xfel\x00o\x00", "", "The columns lo are not known"},
		"names that are not UTF-8":    {"\xe4,\xf6\n", "", "not UTF-8"},
		"what its format needs":       {"alias,long_url\n", transfer.Bitly, "which has link and destinationurl, or"},
		"a workbook":                  {"PK\x03\x04\x14\x00", "", "not CSV but a workbook"},
		"a workbook of old":           {"\xd0\xcf\x11\xe0\xa1\xb1", "", "not CSV but a workbook"},
		"compressed":                  {"\x1f\x8b\x08\x00", "", "Unpack it first"},
		"JSON without links":          {"\n{\"links\": []}", "", "no list of links"},
		"JSON of something else":      {"{\"a\": {\"b\": [1]}}", "", "no list of links"},
		"JSON of texts":               {"[\"https://example.com/\"]", "", "no list of links"},
		"JSON that is cut":            {"{\"links\": [\n{\"slug\": \"a\", \"url\": \"b\"}", "", "line 2 cannot be read"},
		"JSON that is wrong":          {"[{\"slug\": 'a'}]", "", "line 1 cannot be read"},
		"JSON of CSV's service":       {"[{\"keyword\": \"a\", \"url\": \"b\"}]", "", "yourls is CSV, not JSON"},
		"JSON of unknown columns":     {"[{\"a\": \"a\"}]", "", "The columns a are not known"},
		"an unknown alias":            {"long_url,Back half\n", "", "The column Back half looks like an alias"},
		"an unknown target":           {"Website,long_url\n", "", "Another column is read as long_url"},
		"an unknown end":              {"long_url,Expiration date\n", "", "looks like the end of a link"},
		"two aliases of no service":   {"url,alias,hash\n", "", "hash looks like an alias"},
		"names alone":                 {"name,url\n", "", "name looks like an alias"},
		"an end that dub has not":     {"key,url,expiration\n", "", "looks like the end"},
		"an end that YOURLS has not":  {"keyword,url,expires\n", "", "looks like the end"},
		"an end that Sink has not":    {"slug,url,expires_at\n", "", "looks like the end"},
		"two aliases":                 {"long_url,alias,short_code\n", "", "alias looks like an alias"},
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
