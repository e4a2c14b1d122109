package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"linkstream/api/links"
	"linkstream/api/transfer"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestImportRunsAgain(t *testing.T) {
	f := newFixture(t)
	file := lines("alias,domain,long_url,title", "one,,https://example.com/1,",
		"two,go.example.com,https://example.com/2,", ",,https://example.com/3,", ",go.example.com,https://example.com/3,",
		",,https://example.com/3,again", "one,,https://example.com/1,again")
	report := f.imports(t, file)
	counts(t, report, 4, 2, 0)
	derived := report.First[2].ShortURL
	if report.First[4].ShortURL != derived || report.First[3].ShortURL == derived ||
		len(derived) != len("https://sho.rt/1234567") {
		t.Errorf("%+v", report.First)
	}
	_, hash, _ := strings.Cut(derived, "sho.rt/")
	t.Run("links are in the order of the rows", func(t *testing.T) {
		created, err := f.LinksAfter(t.Context(), f.account, schema.LinkFilter{OldestFirst: true}, schema.LinkPosition{}, 10)
		testkit.Must(t, err)
		for i, link := range created {
			if address := f.shortener.ShortURL(link); link.Ordinal != int64(i+1) || address != report.First[i].ShortURL {
				t.Errorf("link %d is %s, row %+v", i+1, address, report.First[i])
			}
		}
	})
	t.Run("and finds every link", func(t *testing.T) {
		counts(t, f.imports(t, file), 0, 6, 0)
		counts(t, f.previews(t, file), 0, 6, 0)
		if total := f.total(t); total != 4 {
			t.Errorf("%d links", total)
		}
	})
	t.Run("and finds a link without an alias whose long URL was changed", func(t *testing.T) {
		link, elsewhere := f.link(t, 0, hash), "https://example.com/elsewhere"
		testkit.Must(t, f.UpdateLink(t.Context(), &link, schema.LinkEdit{URL: &elsewhere}, time.Now()))
		counts(t, f.imports(t, file), 0, 6, 0)
	})
	t.Run("and refuses a link with an alias whose long URL was changed", func(t *testing.T) {
		link, elsewhere := f.link(t, 0, "one"), "https://example.com/elsewhere"
		testkit.Must(t, f.UpdateLink(t.Context(), &link, schema.LinkEdit{URL: &elsewhere}, time.Now()))
		report := f.imports(t, file)
		counts(t, report, 0, 4, 2)
		want := []transfer.RowError{{2, "alias", "You have a link with this alias on this domain that leads elsewhere."},
			{7, "alias", "You have a link with this alias on this domain that leads elsewhere."}}
		if !slices.Equal(report.Errors, want) {
			t.Errorf("%+v", report.Errors)
		}
	})
	t.Run("and creates deleted links again", func(t *testing.T) {
		for _, hash := range []string{"one", hash} {
			testkit.Must(t, f.DeleteLink(t.Context(), f.link(t, 0, hash), time.Now()))
		}
		counts(t, f.previews(t, file), 2, 4, 0)
		counts(t, f.imports(t, file), 2, 4, 0)
		if link := f.link(t, 0, hash); link.URL != "https://example.com/3" || link.Stopped != schema.NotStopped {
			t.Errorf("%+v", link)
		}
	})
}

// TestHashesOfRowsWithoutAlias holds hashes that must not change: see derivedHash.
func TestHashesOfRowsWithoutAlias(t *testing.T) {
	f := newFixture(t)
	file := lines("url", "https://example.com/", "https://example.com/2")
	report := f.previews(t, file)
	for i, want := range []string{"https://sho.rt/iWCn2Cx", "https://sho.rt/jjnKEpA"} {
		if got := report.First[i].ShortURL; got != want {
			t.Errorf("row %d: %s, want %s", i+1, got, want)
		}
	}
	// Another account has the first hash: the row gets the next one, and keeps it.
	hash := strings.TrimPrefix(report.First[0].ShortURL, "https://sho.rt/")
	_, err := f.shortener.Create(t.Context(), links.Request{AccountID: f.other, LongURL: "https://example.com/",
		CustomAlias: &hash, KeepHash: true})
	testkit.Must(t, err)
	previewed, first, second := f.previews(t, file), f.imports(t, file), f.imports(t, file)
	counts(t, previewed, 2, 0, 0)
	counts(t, first, 2, 0, 0)
	counts(t, second, 0, 2, 0)
	for _, report := range []transfer.Report{previewed, first, second} {
		if got := report.First[0].ShortURL; got != "https://sho.rt/JSHq2DP" {
			t.Errorf("%s", got)
		}
	}
}

// An expired link still has an answer for its visitors, so it moves with the others.
func TestImportOfExpiredLinks(t *testing.T) {
	for format, file := range map[transfer.Format]string{
		transfer.Linkstream: lines("alias,long_url,expires_at,expired_url",
			"over,https://example.com/a,2021-05-06T07:08:09+00:00,https://example.com/over"),
		transfer.Kutt: lines("address,target,expire_in", "over,https://example.com/a,2021-05-06T07:08:09.000Z"),
	} {
		t.Run(string(format), func(t *testing.T) {
			f := newFixture(t)
			for _, report := range []transfer.Report{f.previews(t, file), f.imports(t, file)} {
				counts(t, report, 1, 0, 0)
				if len(report.Notes) != 1 || !strings.Contains(report.Notes[0].Text, "has expired") {
					t.Errorf("%+v", report.Notes)
				}
			}
			if link := f.link(t, 0, "over"); !link.ExpiresAt.Equal(utc("2021-05-06T07:08:09Z")) || !link.ExpiredAt(time.Now()) {
				t.Errorf("%+v", link)
			}
			exported := f.export(t, f.account)
			counts(t, f.imports(t, exported), 0, 1, 0)
			empty := newFixture(t)
			counts(t, empty.imports(t, exported), 1, 0, 0)
			if got, want := rowsOf(t, empty.export(t, empty.account)), rowsOf(t, exported); !slices.EqualFunc(got, want,
				slices.Equal) {
				t.Errorf("got\n%q\nwant\n%q", got, want)
			}
		})
	}
}

func TestErrorsOfRows(t *testing.T) {
	const must = "The long URL must begin with http:// or https://."
	for name, c := range map[string]struct {
		file    string
		created int64
		errors  []transfer.RowError
	}{
		"rules of links": {lines("alias,long_url,tags,expires_at,domain",
			"a b,ftp://example.com/,UPPER,9999-12-31T12:00:00Z,", "ok,https://example.com/,,,", "api,https://example.com/,,,",
			",https://evil.example/,,,", ",https://sho.rt/x,,,", strings.Repeat("0", 129)+",https://example.com/,,,"), 1,
			[]transfer.RowError{
				{2, "alias", badAlias},
				{2, "expires_at", "The time of expiry must be in the future, before the year 9999 ends."}, {2, "long_url", must},
				{2, "tags", "Each tag must have 1 to 32 characters of a-z, 0-9, _ and -, unlike \"UPPER\"."},
				{4, "alias", "The alias is reserved."},
				{5, "long_url", "The long URL leads to a host that is known as unsafe."},
				{6, "long_url", "The long URL must not lead to this service itself, or to localhost."},
				{7, "alias", badAlias}}},
		"values that cannot be read": {lines("alias,long_url,expires_at,domain,is_active",
			"a,https://example.com/,tomorrow,,", "b,https://example.com/,2099-01-01 00:00:00 XYZ,,",
			"c,https://example.com/,,no host,", "d,https://example.com/,,,maybe", "e,https://example.com/,1970-01-01,,"), 0,
			[]transfer.RowError{{2, "expires_at", "The time of expiry must be like 2030-12-31T23:59:59+00:00."},
				{3, "expires_at", "The time of expiry must be like 2030-12-31T23:59:59+00:00."},
				{4, "domain", "The domain is not a valid host."},
				{5, "is_active", "The value must be true or false."},
				{6, "expires_at", "The time of expiry must be like 2030-12-31T23:59:59+00:00."}}},
		"aliases in use": {lines("alias,long_url", "taken,https://example.com/", "twice,https://example.com/",
			"twice,https://example.com/2"), 1,
			[]transfer.RowError{{2, "alias", "The alias is already in use on this domain."},
				{4, "alias", "TWICE"}}},
		"what is no CSV": {"\xef\xbb\xbfsep=;\r\nalias;long_url\r\n\"a\nb\";x\r\na\"b;y\r\n" +
			"c;https://example.com/;\r\nd;https://example.com/;more\r\n" +
			";\r\ne\r\nf;https://example.com/\xff\r\n\"g;https://example.com/", 1, []transfer.RowError{
			{3, "alias", badAlias}, {3, "long_url", must},
			{5, "", `A cell has a quotation mark in its text. Write such a cell as "…", and each quotation mark in it twice: ` +
				`"say ""hello""".`},
			{7, "", "The row has more cells than there are columns."}, {9, "long_url", "A long URL is required."},
			{10, "long_url", "The text is not UTF-8. Save the file as CSV in UTF-8."},
			{11, "", "A cell begins with a quotation mark, and the one that ends it is missing, or text follows it." +
				` Write such a cell as "…", and each quotation mark in it twice: "say ""hello""".`}}},
		"passwords of Kutt": {lines("address,target,password", "a,https://example.com/,true",
			"b,https://example.com/,$2a$12$abc", "c,https://example.com/,false"), 1, []transfer.RowError{
			{2, "password", "The link is protected by a password, and would be open to everyone here."},
			{3, "password", "The link is protected by a password, and would be open to everyone here."}}},
		"short URLs": {lines("Link,Destination URL", "https://bit.ly/a%2Fb,https://example.com/",
			"https:///x,https://example.com/", "bit.ly/%C3%A4,https://example.com/", "https://bit.ly/a//b,https://example.com/"),
			1, []transfer.RowError{
				{2, "Link", badAlias},
				{4, "Link", badAlias},
				{5, "Link", badAlias}}},
	} {
		t.Run(name, func(t *testing.T) {
			f, taken := newFixture(t), "taken"
			_, err := f.shortener.Create(t.Context(), links.Request{AccountID: f.other, LongURL: "https://example.com/",
				CustomAlias: &taken})
			testkit.Must(t, err)
			for _, run := range []struct {
				twice  string
				report transfer.Report
			}{
				{"An earlier row has this alias for another long URL.", f.previews(t, c.file)},
				{"You have a link with this alias on this domain that leads elsewhere.", f.imports(t, c.file)},
			} {
				want := slices.Clone(c.errors)
				for i := range want {
					want[i].Reason = strings.Replace(want[i].Reason, "TWICE", run.twice, 1)
				}
				if !slices.Equal(run.report.Errors, want) {
					t.Errorf("got\n%+v\nwant\n%+v", run.report.Errors, want)
				}
				failed := map[int]bool{}
				for _, e := range want {
					failed[e.Line] = true
				}
				counts(t, run.report, c.created, 0, int64(len(failed)))
			}
		})
	}
}

func TestReportIsBounded(t *testing.T) {
	f := newFixture(t)
	var file strings.Builder
	file.WriteString("long_url,domain\n")
	for i := range 2500 {
		fmt.Fprintf(&file, "x,h%d.example.org\n", i)
	}
	var all []transfer.RowError
	var progress []transfer.Progress
	report, err := f.Import(t.Context(), f.account, strings.NewReader(file.String()), transfer.Options{
		OnError:  func(e transfer.RowError) { all = append(all, e) },
		Progress: func(p transfer.Progress) { progress = append(progress, p) },
	})
	testkit.Must(t, err)
	counts(t, report, 0, 0, 2500)
	if len(report.Errors) != transfer.MaxErrors || len(report.First) != transfer.MaxFirst || len(report.Hosts) != 50 {
		t.Errorf("%d errors, %d rows, %d hosts", len(report.Errors), len(report.First), len(report.Hosts))
	}
	if len(all) != 2500 || all[2499].Line != 2501 || all[0] != report.Errors[0] {
		t.Errorf("%d errors", len(all))
	}
	want := []int64{1000, 2000, 2500}
	for i, p := range progress {
		if len(progress) != 3 || p.Rows != want[i] || p.Failed != want[i] || p.Bytes <= int64(i) ||
			p.Bytes > int64(file.Len()) {
			t.Errorf("%+v", progress)
		}
	}
	if progress[2] != report.Progress || report.Bytes != int64(file.Len()) {
		t.Errorf("%+v at the end, %+v in the report", progress[2], report.Progress)
	}
}

func TestChunksOfLongRowsAreShort(t *testing.T) {
	f := newFixture(t)
	var progress []int64
	file := "long_url,other\n" + strings.Repeat("x,"+strings.Repeat("y", 60<<10)+"\n", 150)
	_, err := f.Preview(t.Context(), f.account, strings.NewReader(file), transfer.Options{
		Progress: func(p transfer.Progress) { progress = append(progress, p.Rows) }})
	if testkit.Must(t, err); !slices.Equal(progress, []int64{69, 138, 150}) {
		t.Errorf("%d", progress)
	}
}

func TestHosts(t *testing.T) {
	f := newFixture(t)
	file := lines("domain,alias,long_url", "GO.example.com.,a,https://example.com/", "sho.rt,b,https://example.com/",
		",c,https://example.com/", "bit.ly,d,https://example.com/", "bit.ly,e,https://example.com/",
		"bit.ly:443,f,https://example.com/")
	for domain, to := range map[*int64]string{nil: "sho.rt", &f.domain: "go.example.com"} {
		report, err := f.Preview(t.Context(), f.account, strings.NewReader(file), transfer.Options{DomainID: domain})
		testkit.Must(t, err)
		want := []transfer.HostUse{{"go.example.com", "go.example.com", 1}, {"sho.rt", "sho.rt", 1}, {"", to, 1},
			{"bit.ly", to, 3}}
		if !slices.Equal(report.Hosts, want) {
			t.Errorf("%+v, want %+v", report.Hosts, want)
		}
		for i, moved := range []bool{false, false, false, true} {
			if report.Hosts[i].Moved() != moved {
				t.Errorf("%+v: moved %t", report.Hosts[i], !moved)
			}
		}
		if got := report.First[3].ShortURL; got != "https://"+to+"/d" {
			t.Errorf("%s", got)
		}
	}
	foreign := int64(999)
	report, err := f.Preview(t.Context(), f.account, strings.NewReader(file), transfer.Options{DomainID: &foreign})
	testkit.Must(t, err)
	counts(t, report, 2, 0, 4)
}

func TestInterruptedImport(t *testing.T) {
	f := newFixture(t)
	file := manyRows(2200)
	rest := file[len(file)/2:]
	broken := errors.New("connection lost")
	for name, interrupt := range map[string]func(cancel func(error)) (io.Reader, transfer.Options){
		"by the file": func(func(error)) (io.Reader, transfer.Options) {
			return io.MultiReader(strings.NewReader(file[:len(file)-len(rest)]), failingReader{broken}), transfer.Options{}
		},
		"by the caller": func(cancel func(error)) (io.Reader, transfer.Options) {
			return strings.NewReader(file), transfer.Options{Progress: func(p transfer.Progress) {
				if p.Rows == 1000 {
					cancel(broken)
				}
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			r, opts := interrupt(cancel)
			report, err := f.Import(ctx, f.account, r, opts)
			if !errors.Is(err, broken) && !errors.Is(context.Cause(ctx), broken) {
				t.Fatal(err)
			}
			if done := report.Created + report.Present; done != report.Rows || done < 1000 || done >= 2200 || f.total(t) < done {
				t.Errorf("%+v, %d links", report.Progress, f.total(t))
			}
		})
	}
	report := f.imports(t, file)
	if report.Created+report.Present != 2200 || report.Present < 1000 || f.total(t) != 2200 {
		t.Errorf("%+v, %d links", report.Progress, f.total(t))
	}
	counts(t, f.imports(t, file), 0, 2200, 0)
}

// manyRows returns a file of n rows, every third without an alias.
func manyRows(n int) string {
	var file strings.Builder
	file.WriteString("alias,long_url\n")
	for i := range n {
		alias := fmt.Sprintf("Row-%d", i)
		if i%3 == 0 {
			alias = ""
		}
		fmt.Fprintf(&file, "%s,https://example.com/%d\n", alias, i)
	}
	return file.String()
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

func TestConcurrentImportsCreateLinksOnce(t *testing.T) {
	f := newFixture(t)
	file := manyRows(1100)
	reports := make([]transfer.Report, 2)
	var wg sync.WaitGroup
	for i := range reports {
		wg.Go(func() { reports[i] = f.imports(t, file) })
	}
	wg.Wait()
	var created int64
	for _, report := range reports {
		created += report.Created
		if report.Created+report.Present != 1100 {
			t.Errorf("%+v, errors %+v", report.Progress, report.Errors)
		}
	}
	if total := f.total(t); created != 1100 || total != 1100 {
		t.Errorf("%d created, %d links", created, total)
	}
}

func TestStoresThatFail(t *testing.T) {
	f := newFixture(t)
	f.Close()
	for _, run := range []func(context.Context, int64, io.Reader, transfer.Options) (transfer.Report, error){f.Import,
		f.Preview} {
		report, err := run(t.Context(), f.account, strings.NewReader(manyRows(3)), transfer.Options{})
		if err == nil || !reflect.DeepEqual(report.Progress, transfer.Progress{}) {
			t.Errorf("%+v, %v", report.Progress, err)
		}
	}
}

func TestRowsThatAreChanged(t *testing.T) {
	f := newFixture(t)
	next := time.Now().AddDate(1, 0, 0).Format(time.RFC3339)
	report := f.imports(t, lines("shortCode,longUrl,title,tags,createdAt",
		"a,https://example.com/,"+strings.Repeat("é", 250)+",,", "b,https://example.com/,\" one\ttwo\n\",,",
		"c,https://example.com/,,Été|--|ÄÖ|a  b|A-B|"+strings.Repeat("x", 40)+",", "d,https://example.com/,,,"+next,
		"e,https://example.com/,,,1970-01-01 00:00:00", "f,https://example.com/,,,last year",
		"g,https://example.com/,,,2020-01-01 00:00:00 CEST", "h,https://example.com/,,1|2|3|4|5|6|7|8|9|10|11,"))
	counts(t, report, 7, 0, 1)
	if a, b := f.link(t, 0, "a"), f.link(t, 0, "b"); a.Title != strings.Repeat("é", 200) || b.Title != "one two" {
		t.Errorf("titles %q and %q", a.Title, b.Title)
	}
	if c := f.link(t, 0, "c"); !slices.Equal(c.Tags, []string{"a-b", "t", strings.Repeat("x", 32)}) {
		t.Errorf("tags %q", c.Tags)
	}
	for _, hash := range []string{"d", "e", "f", "g"} {
		if link := f.link(t, 0, hash); time.Since(link.CreatedAt).Abs() > time.Hour {
			t.Errorf("%q was created at %v", hash, link.CreatedAt)
		}
	}
	rows := map[string]int64{}
	for _, note := range report.Notes {
		rows[strings.Fields(note.Text)[1]] = note.Rows
	}
	testkit.Equal(t, "rows by the second word of a note", rows, map[string]int64{"title": 2, "become": 1, "time": 4})
}

// The zone of the machine does not change the meaning of a file.
func TestTimesOnMachinesOfAnyZone(t *testing.T) {
	local := time.Local
	defer func() { time.Local = local }()
	for zone, text := range map[string]string{"Europe/Berlin": "2020-07-01 12:00:00 CEST",
		"Africa/Casablanca": "2020-05-01 12:00:00+00:00"} {
		var err error
		time.Local, err = time.LoadLocation(zone)
		testkit.Must(t, err)
		f := newFixture(t)
		report := f.imports(t, lines("long_url,hash,created_at", "https://example.com/,a,"+text))
		counts(t, report, 1, 0, 0)
		known := strings.HasSuffix(text, "+00:00")
		if refused := len(report.Notes) == 1; refused == known {
			t.Errorf("in %s, %s: notes %v", zone, text, report.Notes)
		}
		if at := f.link(t, 0, "a").CreatedAt; known && !at.Equal(time.Date(2020, time.May, 1, 12, 0, 0, 0, time.UTC)) {
			t.Errorf("in %s, %s: created at %v", zone, text, at)
		}
	}
}

func TestImportOfUnreadableRowsEndsWithItsContext(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	file := "long_url\n" + strings.Repeat("a\"b\n", 2500)
	report, err := f.Import(ctx, f.account, strings.NewReader(file),
		transfer.Options{Progress: func(transfer.Progress) { cancel() }})
	if !errors.Is(err, context.Canceled) || report.Rows != 1000 {
		t.Errorf("%+v, %v", report.Progress, err)
	}
}
