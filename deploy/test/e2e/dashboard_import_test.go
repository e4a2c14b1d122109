package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/runtime"

	"linkstream/schema/testkit"
)

// chooseFile chooses a file with this content in the page's field for files.
func (b *tab) chooseFile(name, content string) {
	b.t.Helper()
	path := filepath.Join(b.t.TempDir(), name)
	b.must(os.WriteFile(path, []byte(content), 0o600))
	field := call1(b, runtime.Evaluate, runtime.EvaluateParams{Expression: `document.querySelector("input[type=file]")`})
	call1(b, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: []string{path}, ObjectID: field.Result.ObjectID})
}

// reloads loads the page again until it shows a text. Without a script it does not do so by itself.
func (b *tab) reloads(path, text string) {
	b.t.Helper()
	testkit.SucceedsWithin(b.t, pageWithin, func() error {
		b.page(path)
		if shown := b.text(); !strings.Contains(shown, text) {
			return fmt.Errorf("the page does not show %q: %s", text, shown)
		}
		return nil
	})
}

// importsLinks leaves the tab on the list of links, which has five more.
func (b *tab) importsLinks(t *testing.T, s *system, target string) {
	b.sees("Links", "26 links")
	b.press("More")
	b.sees("Create many", "Create many links")
	b.fill("Long URLs, one per line", target+"/many/1\n"+target+"/many/2 many-2\nnothing\n")
	b.sees("Create links", "2 links are ready", "1 of 3 lines skipped", address(s.edge)+"/many-2")
	b.press("Copy all")
	b.find("Copied")
	b.page("/dashboard/import")
	b.chooseFile("my links.csv", "alias,long_url,title\nimport-1,"+target+"/import,First\nimport-2,"+target+"/import,\n"+
		"many-2,"+target+"/many/2,\nmany-2,https://elsewhere.example/,\nimport-3,"+target+"/3,\n")
	b.sees("Upload and check", "Ready to import “my links.csv”", "3 new links", "1 row has a link already", "1 row will be skipped")
	b.sees("Import 3 links", "was imported", "5 rows: 3 created, 1 already there, 1 skipped.", "Problems")
	testkit.SucceedsWithin(t, pageWithin, func() error { return s.visit(t, http.MethodHead, "/import-1").IsStatus(http.StatusFound) })
	b.sees("See your links", address(s.edge)+"/import-3")
	export := evaluate[string](b, `fetch("/dashboard/export.csv").then((answer) => answer.text())`)
	if lines := strings.Count(export, "\r\n"); lines != 32 || !strings.Contains(export, s.edge+"/import-1,import-1,,"+target+"/import,First,") {
		t.Errorf("the export has %d lines: %s", lines, export)
	}
}

// TestDashboardImportKilled kills the program in mid-import. Its next run says so, and makes each link once.
func TestDashboardImportKilled(t *testing.T) {
	t.Parallel()
	s := startSystem(t)
	b := newTab(t, s.api).signIn(s) // without faults: the page asks a program that is not there
	const n = 40_000
	var file strings.Builder
	file.WriteString("alias,long_url\n")
	for i := range n {
		fmt.Fprintf(&file, "row-%d,https://example.com/%d\n", i, i)
	}
	b.page("/dashboard/import")
	b.chooseFile("many.csv", file.String())
	b.sees("Upload and check", "Import 40,000 links")
	b.follow("Import 40,000 links")
	owner := s.owner()
	total := func() int64 {
		_, meta := owner.Page(t, "")
		return number(t, meta, "total")
	}
	testkit.SucceedsWithin(t, pageWithin, func() error {
		if total() == 0 {
			return fmt.Errorf("nothing is imported yet")
		}
		return nil
	})
	s.programs[0].kill(t)
	s.programs[0].launch(t)
	s.awaitReady(t)
	if made := total(); made == 0 || made == n {
		t.Fatalf("killed when %d links were made", made)
	}
	testkit.SucceedsWithin(t, 2*pageWithin, func() error { // by itself, once the lease of the killed program has ended
		if shown := b.textSoon(); !strings.Contains(shown, "was interrupted") {
			return fmt.Errorf("the page shows %s", shown)
		}
		return nil
	})
	b.follow("Run it again")
	testkit.SucceedsWithin(t, 2*pageWithin, func() error {
		if shown := b.textSoon(); !strings.Contains(shown, "was imported 40,000 rows: ") || !strings.Contains(shown, " already there, 0 skipped.") {
			return fmt.Errorf("the page shows %s", shown)
		}
		return nil
	})
	testkit.Equal(t, "links", total(), n)
}
