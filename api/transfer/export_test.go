package transfer_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"linkstream/api/auth"
	"linkstream/api/csvfile"
	"linkstream/api/transfer"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// clicks has a click count for each link: its ID times ten.
type clicks struct{ asked []int }

func (c *clicks) ClickCounts(_ context.Context, ids []int64) (map[int64]int64, error) {
	c.asked = append(c.asked, len(ids))
	counts := map[int64]int64{}
	for _, id := range ids {
		counts[id] = 10 * id
	}
	return counts, nil
}

func (f *fixture) export(t *testing.T, accountID int64) (file string) {
	t.Helper()
	var out bytes.Buffer
	_, err := transfer.NewExporter(f.shortener.Base(), f.Store, &clicks{}).Export(t.Context(), accountID,
		schema.LinkFilter{}, &out)
	testkit.Must(t, err)
	return out.String()
}

func TestExport(t *testing.T) {
	f := newFixture(t)
	const header = "\ufeffshort_url,alias,domain,long_url,title,tags,is_active,created_at,expires_at,expired_url," +
		"forward_query,rules,variants,card,max_clicks,path_mode,former_hashes,has_password,external_id,clicks\r\n"
	if file := f.export(t, f.account); file != header {
		t.Errorf("%q of an empty account", file)
	}
	f.imports(t, exports["linkstream"].file)
	f.imports(t, lines("alias,long_url,title,tags,created_at", "deleted,https://example.com/,,,",
		"'=x,https://example.com/,T,,",
		`t,https://example.com/t,"''=1+1",,2020-01-01`, `q,https://example.com/," ''=1+1 ",-a b,2020-01-01`))
	link := f.link(t, 0, "deleted")
	testkit.Must(t, f.DeleteLink(t.Context(), link, time.Now()))
	file := f.export(t, f.account)

	t.Run("has all links in order of their ordinals", func(t *testing.T) {
		a, b, q, title := f.link(t, 0, "aBc1234"), f.link(t, f.domain, "-x"), f.link(t, 0, "q"), f.link(t, 0, "t")
		rows := map[int64]string{
			a.Ordinal: fmt.Sprintf(`https://sho.rt/aBc1234,aBc1234,,https://example.com/a?x=1&y=2,"A, ""quoted"" title",go `+
				`news,true,`+
				`2024-02-29T10:00:00+00:00,2099-01-02T03:04:05+00:00,https://example.com/over,true,%s,,false,order/1%%,%d`,
				behaviourCells, 10*a.ID),
			b.Ordinal: fmt.Sprintf(`https://go.example.com/-x,'-x,go.example.com,https://example.com/b,'=1+1,,false,%s,,,false,`+
				`,,,,,,false,'=1,%d`,
				b.CreatedAt.UTC().Format("2006-01-02T15:04:05-07:00"), 10*b.ID),
			q.Ordinal: fmt.Sprintf(`https://sho.rt/q,q,,https://example.com/," ''=1+1 ",'-a b,true,`+
				`2020-01-01T00:00:00+00:00,,,false,,,,,,,false,,%d`, 10*q.ID),
			title.Ordinal: fmt.Sprintf(`https://sho.rt/t,t,,https://example.com/t,''=1+1,,true,2020-01-01T00:00:00+00:00,,,`+
				`false,,,,,,,false,,%d`, 10*title.ID),
		}
		want := header
		for ordinal := range int64(10) {
			if row, ok := rows[ordinal]; ok {
				want += row + "\r\n"
			}
		}
		if file != want {
			t.Errorf("got\n%s\nwant\n%s", file, want)
		}
	})
	t.Run("comes back from an empty account as it was", func(t *testing.T) {
		empty := newFixture(t)
		counts(t, empty.imports(t, file), 4, 0, 0)
		if got, want := rowsOf(t, empty.export(t, empty.account)), rowsOf(t, file); !slices.EqualFunc(got, want,
			slices.Equal) {
			t.Errorf("got\n%q\nwant\n%q", got, want)
		}
		counts(t, empty.imports(t, file), 0, 4, 0)
	})
	t.Run("brings former names along except those of other links", func(t *testing.T) {
		from, to := newFixture(t), newFixture(t)
		counts(t, from.imports(t, lines("alias,long_url,former_hashes", "now/1,https://example.com/,old.1 old/2 a//b now/1",
			"other,https://example.com/,old.1 Third")), 2, 0, 0)
		names := func(f *fixture, hash string) string {
			link := f.link(t, 0, hash)
			return fmt.Sprint(link.Hash, link.FormerHashes)
		}
		testkit.Equal(t, "names", names(from, "old/2"), "now/1[old.1 old/2]")
		testkit.Equal(t, "names", names(from, "other"), "other[Third]")
		file := from.export(t, from.account)
		to.previews(t, file)
		counts(t, to.imports(t, file), 2, 0, 0)
		testkit.Equal(t, "names", names(to, "old.1"), "now/1[old.1 old/2]")
		testkit.Equal(t, "names", names(to, "Third"), "other[Third]")
		report := to.imports(t, lines("alias,long_url,former_hashes", "old.1,https://example.com/,old.3",
			"Third,https://example.com/,old.1"))
		counts(t, report, 0, 2, 0)
		testkit.Equal(t, "names", names(to, "now/1"), "now/1[old.1 old/2 old.3]")
		if !slices.ContainsFunc(report.Notes, func(n transfer.Note) bool {
			return n.Rows == 1 && strings.HasPrefix(n.Text, "Former names")
		}) {
			t.Errorf("%+v", report.Notes)
		}
	})
	t.Run("says which links have a password and needs it in an import", func(t *testing.T) {
		f := newFixture(t)
		counts(t, f.imports(t, lines("alias,long_url,password", `p,https://example.com/," öpen "`)), 1, 0, 0)
		link := f.link(t, 0, "p")
		hash, _, err := f.LinkPassword(t.Context(), link.ID)
		testkit.Must(t, err)
		if ok, err := auth.VerifyPassword(hash, " öpen "); !ok || link.Behaviour == nil || link.Behaviour.Password == 0 {
			t.Error(link.Behaviour, hash, err)
		}
		file := f.export(t, f.account)
		if strings.Contains(file, "argon2") || !strings.Contains(file, ",true,") {
			t.Errorf("%q", file)
		}
		counts(t, newFixture(t).imports(t, file), 0, 0, 1)
	})
	t.Run("has the links of one account", func(t *testing.T) {
		if file := f.export(t, f.other); file != header {
			t.Errorf("%q", file)
		}
	})
	t.Run("reports errors of the stores and of the file", func(t *testing.T) {
		full := errors.New("disk full")
		if _, err := transfer.NewExporter(f.shortener.Base(), f.Store, &clicks{}).Export(t.Context(), f.account,
			schema.LinkFilter{}, failing{full}); !errors.Is(err, full) {
			t.Errorf("%v", err)
		}
		f.Close()
		if _, err := transfer.NewExporter(f.shortener.Base(), f.Store, &clicks{}).Export(t.Context(), f.account,
			schema.LinkFilter{}, &bytes.Buffer{}); err == nil {
			t.Error("no error of the store")
		}
	})
}

// TestGuardedCellsComeBack exports texts that spreadsheets may take for formulas, and imports them elsewhere.
func TestGuardedCellsComeBack(t *testing.T) {
	titles := []string{"=1", "x;=1", "x|-1", `x;"=1`, "'=1", "x;'=1", "＝1", "x, =1", `"=1"`, "@x;@y", "it's;'", "-"}
	var file strings.Builder
	out := csv.NewWriter(&file)
	testkit.Must(t, out.Write([]string{"alias", "long_url", "title", "card"}))
	for i, title := range titles {
		card, err := json.Marshal(schema.Card{Title: "c;" + title, Description: title})
		testkit.Must(t, err)
		testkit.Must(t, out.Write([]string{fmt.Sprint("l-", i), "https://example.com/;=" + fmt.Sprint(i),
			csvfile.Guard(title), csvfile.Guard(string(card))}))
	}
	out.Flush()
	from, to := newFixture(t), newFixture(t)
	counts(t, from.imports(t, file.String()), int64(len(titles)), 0, 0)
	exported := from.export(t, from.account)
	for _, cell := range strings.FieldsFunc(exported, func(r rune) bool { return strings.ContainsRune(";|\t\r\n,", r) }) {
		if cell = strings.TrimLeft(cell, `"`); cell != "" && strings.ContainsAny(cell[:1], "=@") {
			t.Errorf("the cell %q begins a formula", cell)
		}
	}
	counts(t, to.imports(t, exported), int64(len(titles)), 0, 0)
	for i, title := range titles {
		link := to.link(t, 0, fmt.Sprint("l-", i))
		got := []string{link.Title, link.Behaviour.Card.Title, link.Behaviour.Card.Description, link.URL}
		want := []string{title, "c;" + title, title, "https://example.com/;=" + fmt.Sprint(i)}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

type failing struct{ err error }

func (w failing) Write([]byte) (int, error) { return 0, w.err }

// rowsOf returns the rows of an export in order of their addresses, without counts.
func rowsOf(t *testing.T, file string) [][]string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(file)).ReadAll()
	testkit.Must(t, err)
	for i, row := range rows {
		rows[i] = row[:len(row)-1]
	}
	slices.SortFunc(rows[1:], func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	return rows
}

// growing is an account that gets a link whenever a page of its links is read.
type growing struct {
	*fixture
	t     *testing.T
	added int
}

func (g *growing) LinksAfter(
	ctx context.Context, accountID int64, filter schema.LinkFilter, after schema.LinkPosition, limit int,
) ([]schema.Link, error) {
	g.added++
	if g.added > 10 {
		return nil, errors.New("the export does not end")
	}
	g.imports(g.t, lines("alias,long_url", fmt.Sprintf("new-%d,https://example.com/", g.added)))
	return g.fixture.LinksAfter(ctx, accountID, filter, after, limit)
}

func TestExportReadsPages(t *testing.T) {
	f := newFixture(t)
	var file strings.Builder
	file.WriteString("alias,long_url\n")
	for i := range 401 {
		fmt.Fprintf(&file, "l-%d,https://example.com/%d\n", i, i)
	}
	f.imports(t, file.String())
	var out bytes.Buffer
	counter := &clicks{}
	links, err := transfer.NewExporter(f.shortener.Base(), &growing{fixture: f, t: t}, counter).Export(t.Context(),
		f.account, schema.LinkFilter{}, &out)
	if err != nil || links != 401 || !slices.Equal(counter.asked, []int{200, 200, 1}) {
		t.Errorf("%d links, %v, counts of %d", links, err, counter.asked)
	}
	if rows := rowsOf(t, out.String()); len(rows) != 402 || strings.Contains(out.String(), "new-") {
		t.Errorf("%d rows", len(rows))
	}
}
