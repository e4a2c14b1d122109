package e2e_test

import (
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"linkstream/deploy/test/launch"
	"linkstream/schema/testkit"
)

// importedRows is some chunks of an import.
const importedRows = 3500

// testImportAndExport kills an import with -9, runs it again while the service runs, and compares the export with the
// file.
func testImportAndExport(t *testing.T, s *system) {
	mover, email := s.another(t, "mover")
	var file strings.Builder
	file.WriteString("createdAt;domain;shortCode;shortUrl;longUrl;title;tags;visits\n")
	for i := range importedRows {
		fmt.Fprintf(&file, "2022-01-15T09:30:00+01:00;s.test;Im%d;https://s.test/Im%d;https://example.com/imported/%d;\"Title; %d\";a|B c;7\n", i, i, i, i)
	}
	s.killImport(t, mover, email, file.String())
	path := filepath.Join(t.TempDir(), "shlink.csv")
	writeFile(t, path, file.String())
	dry := s.admin(t, "import", email, path, "--dry-run")
	var known, created int64
	if n, err := fmt.Sscanf(lastLine(dry), "format shlink: rows 3500, would be created %d, already there %d, failed 0", &created, &known); n != 2 {
		t.Fatalf("printed %q: %v", dry, err)
	}
	want := fmt.Sprintf("format shlink: rows 3500, created %d, already there %d, failed 0", created, known)
	if got := lastLine(s.admin(t, "import", email, path)); known < 1000 || got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
	if got := countLinks(t, mover); got != importedRows {
		t.Errorf("%d links", got)
	}
	if a := s.click(t, "Im3499"); a.Header.Get("Location") != "https://example.com/imported/3499" {
		t.Errorf("%v", a)
	}
	mover.WaitTotal(t, "Im3499", 1)
	exported := s.admin(t, "export", email)
	rows, err := csv.NewReader(strings.NewReader(exported)).ReadAll()
	testkit.Must(t, err)
	if len(rows) != 1+importedRows {
		t.Fatalf("%d rows exported", len(rows))
	}
	for i, row := range rows[1:] {
		clicks := 0
		if i == importedRows-1 {
			clicks = 1
		}
		n := strconv.Itoa(i)
		if want := s.edge + "/Im" + n + ",Im" + n + ",,https://example.com/imported/" + n + ",Title; " + n + ",a b-c,true,2022-01-15T08:30:00+00:00,,,false,,,,,false," +
			strconv.Itoa(clicks); strings.Join(row, ",") != want {
			t.Fatalf("row %d is\n%s\nwant\n%s", i+1, strings.Join(row, ","), want)
		}
	}
}

// killImport runs an import of the file's first half, and kills it with -9 once the account has links.
func (s *system) killImport(t *testing.T, account caller, email, file string) {
	t.Helper()
	p := s.programs[0]
	cmd := exec.CommandContext(t.Context(), launch.Program(t, p.name), append(p.args[:len(p.args):len(p.args)], "import", email, "-")...)
	cmd.Env = append(launch.CleanEnv(), p.env...)
	stdin, err := cmd.StdinPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	_, err = io.WriteString(stdin, file[:len(file)/2])
	testkit.Must(t, err)
	testkit.Succeeds(t, func() error {
		if total := countLinks(t, account); total < 1000 {
			return fmt.Errorf("%d links", total)
		}
		return nil
	})
	testkit.Must(t, cmd.Process.Signal(os.Kill))
	if err := cmd.Wait(); err == nil {
		t.Error("the import ended before it was killed")
	}
}

// countLinks returns the number of the caller's links.
func countLinks(t *testing.T, c caller) int64 {
	t.Helper()
	_, meta := c.Page(t, "")
	return number(t, meta, "total")
}

func lastLine(text string) string { return text[strings.LastIndex(text, "\n")+1:] }
