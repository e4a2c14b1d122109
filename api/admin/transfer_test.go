package admin_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"linkstream/api/admin"
	"linkstream/api/links"
	"linkstream/schema"
	"linkstream/schema/blocklist"
	"linkstream/schema/testkit"
)

// parts are the parts of a service that has counted seven clicks on each link.
func parts(stdin io.Reader) admin.Parts {
	return admin.Parts{In: stdin, Progress: io.Discard,
		Shortener: func(store schema.LinkStore, domains schema.DomainStore) (*links.Shortener, error) {
			list, err := blocklist.Open("", slog.New(slog.DiscardHandler))
			return links.New(schema.MustParseBaseURL("http://sho.rt:8080"), store, domains, list), err
		},
		Clicks: func(context.Context) (admin.Clicks, error) { return seven{}, nil }}
}

type seven struct{ set *[]schema.History }

func (s seven) SetHistories(_ context.Context, histories ...schema.History) error {
	if s.set != nil {
		*s.set = append(*s.set, histories...)
	}
	return nil
}

func (seven) ClickCounts(_ context.Context, _ int64, ids []int64) (map[int64]int64, error) {
	counts := map[int64]int64{}
	for _, id := range ids {
		counts[id] = 7
	}
	return counts, nil
}

const (
	bitlyExport = "Link,Custom Link,Date created,Title,Destination URL,Engagements,Status\n" +
		"https://bit.ly/AbC,,2020-01-02T03:04:05Z,A title,https://example.com/a,5,Active\n" +
		"https://bit.ly/bad,,2020-01-02T03:04:05Z,,ftp://example.com/,0,Active\n" +
		"https://go.example.com/Custom,,2020-01-02T03:04:05Z,,https://example.com/b,0,Active\n"
	exported = "\ufeffshort_url,alias,domain,long_url,title,tags,is_active,created_at," +
		"expires_at,expired_url,forward_query,rules,variants,card,max_clicks,path_mode,former_hashes," +
		"has_password,external_id,clicks\r\n" +
		"http://sho.rt:8080/AbC,AbC,,https://example.com/a,A title,,true,2020-01-02T03:04:05+00:00,,,false,,,,,,,false,,7\r\n"
	badRow  = "line 3, column Destination URL: The long URL must begin with http:// or https://.\n"
	columns = "column Link: short_url\ncolumn Custom Link: short_url\ncolumn Date created: created_at\n" +
		"column Title: title\ncolumn Destination URL: long_url\ncolumn Engagements: clicks\ncolumn Status: not read\n"
	counts = "rows 1: Clicks are counted as imported ones, on the day on which the link was made: see " +
		"reports.\n"
)

// wantFailed requires the output of an import that fails because of rows.
func wantFailed(t *testing.T, printed string, err error, want string) {
	t.Helper()
	if schema.ErrorCode(err) != schema.CodeInvalid || !strings.Contains(err.Error(), "import: 1 of 3 rows failed") ||
		printed != want {
		t.Errorf("%v, printed\n%s\nwant\n%s", err, printed, want)
	}
}

func TestImportAndExport(t *testing.T) {
	c := newCLIWithAccounts(t)
	domain := number(t, c.prints(t, "domain add a@example.org go.example.com --verified"))
	bitLy := "rows 2: Links of bit.ly, which is no verified domain of the account, are on sho.rt\n"
	t.Run("import --dry-run prints the outcomes of the rows", func(t *testing.T) {
		printed, err := c.runWith(t, "import a@example.org - --dry-run", bitlyExport)
		wantFailed(t, printed, err, badRow+columns+bitLy+counts+
			"format bitly: rows 3, would be created 2, already there 0, failed 1, imported clicks 5\n")
		if _, err := schema.FindLink(t.Context(), c, 0, "AbC"); schema.ErrorCode(err) != schema.CodeNotFound {
			t.Errorf("%v", err)
		}
	})
	t.Run("import reads the standard input or a file, and may run again", func(t *testing.T) {
		printed, err := c.runWith(t, "import A@example.org -", bitlyExport)
		wantFailed(t, printed, err, badRow+bitLy+counts+
			"format bitly: rows 3, created 2, already there 0, failed 1, imported clicks 5\n")
		file := filepath.Join(t.TempDir(), "bitly.csv")
		testkit.Must(t, os.WriteFile(file, []byte(bitlyExport), 0o600))
		printed, err = c.run(t, "import a@example.org "+file+" --format bitly")
		wantFailed(t, printed, err, badRow+bitLy+counts+
			"format bitly: rows 3, created 0, already there 2, failed 1, imported clicks 5\n")
		for id, hash := range map[int64]string{0: "AbC", domain: "Custom"} {
			if _, err := schema.FindLink(t.Context(), c, id, hash); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("import --domain puts links of other hosts on a domain", func(t *testing.T) {
		printed, err := c.runWith(t, "import a@example.org - --domain GO.example.com",
			"alias,long_url\none,https://example.com/\n")
		const want = "format linkstream: rows 1, created 1, already there 0, failed 0, imported clicks 0\n"
		if err != nil || printed != want {
			t.Errorf("%q, %v", printed, err)
		}
		_, err = schema.FindLink(t.Context(), c, domain, "one")
		testkit.Must(t, err)
	})
	t.Run("export prints the links with their counts", func(t *testing.T) {
		c.prints(t, "domain remove go.example.com")
		printed, err := c.run(t, "export a@example.org")
		if err != nil || !strings.HasPrefix(printed, exported) || strings.Count(printed, "\n") != 4 {
			t.Errorf("%v, printed\n%s", err, printed)
		}
		again, err := c.runWith(t, "import b@example.org - --dry-run", printed)
		if schema.ErrorCode(err) != schema.CodeInvalid || strings.Count(again, "already in use") != 1 {
			t.Errorf("%v, printed\n%s", err, again)
		}
	})
}

func TestImportAndExportReportFailures(t *testing.T) {
	c := newCLIWithAccounts(t)
	c.prints(t, "domain add a@example.org go.example.com --verified")
	for line, why := range map[string]string{
		"import c@example.org -":                         `import: there is no account "c@example.org"`,
		"export c@example.org":                           `export: there is no account "c@example.org"`,
		"import b@example.org - --domain go.example.com": "import: \"go.example.com\" is a domain of another account",
		"import b@example.org - --domain no.example.com": `import: no account has verified "no.example.com"`,
	} {
		c.fails(t, line, schema.CodeNotFound, why)
	}
	c.fails(t, "import a@example.org -", schema.CodeInvalid, "import: read the standard input: The file is empty.")
	c.fails(t, "import a@example.org - --format excel", schema.CodeInvalid, `import: The format "excel" is not known`)
	c.fails(t, "import a@example.org "+filepath.Join(t.TempDir(), "none.csv"), schema.CodeInvalid,
		"none.csv: no such file")
	full := errors.New("disk full")
	for _, command := range []string{"import", "export"} {
		args := []string{command, "a@example.org", "-"}[:map[string]int{"import": 3, "export": 2}[command]]
		options := admin.Config{EdgeURL: schema.MustParseBaseURL("http://sho.rt:8080"),
			Parts: parts(bytes.NewBufferString(bitlyExport))}
		if err := admin.Run(t.Context(), c, options, args, failing{full}); !errors.Is(err, full) {
			t.Errorf("%s: %v", command, err)
		}
	}
	t.Run("of the file in the middle, with the rows done until then", func(t *testing.T) {
		rows := strings.Repeat("one,https://example.com/,"+strings.Repeat("x", 190)+"\n", 300)
		reader := io.MultiReader(strings.NewReader("alias,long_url,title\n"+rows), failing{full})
		options := admin.Config{EdgeURL: schema.MustParseBaseURL("http://sho.rt:8080"), Parts: parts(reader)}
		var out strings.Builder
		err := admin.Run(t.Context(), c, options, []string{"import", "a@example.org", "-"}, &out)
		const want = "format linkstream: rows 300, created 1, already there 299, failed 0, imported clicks 0\n"
		if !errors.Is(err, full) || out.String() != want {
			t.Errorf("%v, printed %q", err, out.String())
		}
	})
}

// failing is a file that cannot be read or written.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error)  { return 0, f.err }
func (f failing) Write([]byte) (int, error) { return 0, f.err }
