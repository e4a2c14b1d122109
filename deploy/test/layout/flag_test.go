package layout_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"linkstream/deploy/test/launch"
	"linkstream/schema/testkit"
)

func TestMain(m *testing.M) { os.Exit(launch.Of(m).Run()) }

var (
	listedFlag = regexp.MustCompile(`(?m)^  -([a-z0-9.-]+)`)
	// namedFlag and namedVariable are settings that documents mention.
	namedFlag     = regexp.MustCompile(`(?:^|[^a-z])-((?:api|bootstrap|clickhouse|edge|ingest|kafka|log|ops|postgres|spool|trace)\.[a-z0-9-]*[a-z0-9])`)
	namedVariable = regexp.MustCompile(`LINKSTREAM_((?:API|BOOTSTRAP|CLICKHOUSE|EDGE|INGEST|KAFKA|LOG|OPS|POSTGRES|SPOOL|TRACE)_[A-Z_]*[A-Z])`)
)

// TestFlagsAndManual compares the flags of the programs with what the documents say.
func TestFlagsAndManual(t *testing.T) {
	flags := map[string]string{} // to a program that has it
	for _, program := range []string{"api", "edge", "ingest", "migrate-to", "standalone"} {
		help, err := exec.Command(launch.Program(t, program), "-h").CombinedOutput()
		testkit.Must(t, err)
		for _, m := range listedFlag.FindAllStringSubmatch(string(help), -1) {
			flags[m[1]] = program
		}
	}
	var documents, manual, table strings.Builder
	for _, pattern := range []string{"README.md", ".github/*.md", "deploy/README.md", "deploy/manual/*.md"} {
		paths, err := filepath.Glob(filepath.Join(launch.Root(), pattern))
		testkit.Must(t, err)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			testkit.Must(t, err)
			documents.Write(text)
			if strings.HasPrefix(pattern, "deploy/") {
				manual.Write(text)
			}
			if filepath.Base(path) == "reference.md" {
				table.WriteString(firstCells(string(text)))
			}
		}
	}
	t.Run("every setting is in a table of the reference, every option of a command in the manual", func(t *testing.T) {
		for name, program := range flags {
			text := manual.String()
			if strings.Contains(name, ".") && !strings.HasSuffix(name, "-file") { // settings whose name ends so are files of secrets
				text = table.String()
			}
			if !regexp.MustCompile(`-` + regexp.QuoteMeta(name) + `(?:[^a-z0-9.-]|$)`).MatchString(text) {
				t.Errorf("%s has -%s", program, name)
			}
		}
	})
	t.Run("every setting that a document names is one", func(t *testing.T) {
		variables := map[string]bool{}
		for name := range flags {
			variables[strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(name))] = true
		}
		for _, m := range namedFlag.FindAllStringSubmatch(documents.String(), -1) {
			if flags[m[1]] == "" {
				t.Errorf("no program has -%s", m[1])
			}
		}
		for _, m := range namedVariable.FindAllStringSubmatch(documents.String(), -1) {
			if !variables[m[1]] {
				t.Errorf("no program has LINKSTREAM_%s", m[1])
			}
		}
	})
}

// firstCells returns the first cells of the rows of tables.
func firstCells(text string) string {
	var cells []string
	for line := range strings.Lines(text) {
		if row, ok := strings.CutPrefix(line, "| "); ok {
			cell, _, _ := strings.Cut(row, " |")
			cells = append(cells, cell)
		}
	}
	return strings.Join(cells, "\n")
}
