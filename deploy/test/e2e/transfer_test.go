package e2e_test

import (
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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
		fmt.Fprintf(&file, "2022-01-15T09:30:00+01:00;s.test;Im%d;https://s.test/Im%d;https://example.com/imported/%d;"+
			"\"Title; %d\";a|B c;7\n", i, i, i, i)
	}
	s.killImport(t, mover, email, file.String())
	path := filepath.Join(t.TempDir(), "shlink.csv")
	writeFile(t, path, file.String())
	known := countLinks(t, mover)
	want := fmt.Sprintf("format shlink: rows 3500, created %d, already there %d, failed 0", importedRows-known, known)
	out := s.admin(t, "import", email, path)
	testkit.Equal(t, "last line", out[strings.LastIndex(out, "\n")+1:], want)
	testkit.Equal(t, "links", countLinks(t, mover), importedRows)
	if a := s.click(t, "Im3499"); a.Header.Get("Location") != "https://example.com/imported/3499" {
		t.Errorf("%v", a)
	}
	mover.WaitTotal(t, "Im3499", 1)
	exported := s.admin(t, "export", email)
	rows, err := csv.NewReader(strings.NewReader(exported)).ReadAll()
	testkit.Must(t, err)
	testkit.Equal(t, "exported rows", len(rows), 1+importedRows)
	const last = "Im3499"
	testkit.Equal(t, "last row", strings.Join(rows[importedRows], ","), s.edge+"/"+last+","+last+
		",,https://example.com/imported/3499,Title; 3499,a b-c,true,2022-01-15T08:30:00+00:00,,,false,,,,,false,1")
}

// killImport runs an import of the file's first half, and kills it with -9 once the account has links.
func (s *system) killImport(t *testing.T, account caller, email, file string) {
	t.Helper()
	p := s.programs[0]
	args := append(p.args[:len(p.args):len(p.args)], "import", email, "-")
	cmd := exec.CommandContext(t.Context(), launch.Program(t, p.name), args...)
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
