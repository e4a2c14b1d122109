package layout_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"linkstream/api/admin"
	"linkstream/api/apiservice"
	"linkstream/edge/edgeservice"
	"linkstream/ingest/ingestservice"
	"linkstream/schema/clickhouse"
	"linkstream/schema/linkstore/postgres"
	"linkstream/schema/service"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
	"linkstream/schema/tracing"
)

const sectionNames = `api|bootstrap|clickhouse|edge|ingest|kafka|log|ops|postgres|spool|trace`

var (
	definesFlag = regexp.MustCompile(`(?:Var|Func)$`) // the methods of a flag.FlagSet, and schema.SecretVar
	flagName    = regexp.MustCompile(`^[a-z][a-z0-9.-]+$`)
	// namedFlag and namedVariable are settings that documents mention.
	namedFlag     = regexp.MustCompile(`(?:^|[^a-z])-((?:` + sectionNames + `)\.[a-z0-9-]*[a-z0-9])`)
	namedVariable = regexp.MustCompile(`LINKSTREAM_((?:` + strings.ToUpper(sectionNames) + `)_[A-Z_]*[A-Z])`)
)

// settings returns the flags of the programs: the names that RegisterFlags of their configurations define, and the
// names in the source, which has more configurations than one can import.
func settings(t *testing.T) (names []string) {
	t.Helper()
	for _, section := range []service.Section{new(edgeservice.Config), new(apiservice.Config), new(ingestservice.Config),
		new(postgres.Config), new(clickhouse.Config), new(stream.Config), new(tracing.Config), new(admin.FirstAccount)} {
		fs := flag.NewFlagSet("", flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		_, _ = service.Parse(fs, nil, section) // also defines a flag for the file of each secret; needs no valid settings
		fs.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	}
	for _, folder := range []string{"api", "edge", "ingest", "schema", "deploy/standalone", "deploy/migrate-to"} {
		testkit.Must(t, walkCode(os.DirFS(filepath.Join(moduleRoot, folder)), func(name string, content []byte) error {
			file, err := parser.ParseFile(token.NewFileSet(), name, content, parser.SkipObjectResolution)
			if err == nil {
				ast.Inspect(file, func(n ast.Node) bool {
					names = append(names, definedFlag(n)...)
					return true
				})
			}
			return err
		}))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// definedFlag returns the name of the flag that a call such as fs.StringVar(&c.Listen, "edge.listen", …) or
// fs.Func("scope", …) defines, if it is a literal: the first one.
func definedFlag(n ast.Node) []string {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return nil
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !definesFlag.MatchString(method.Sel.Name) {
		return nil
	}
	for _, arg := range call.Args {
		if literal, ok := arg.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if name := strings.Trim(literal.Value, `"`); flagName.MatchString(name) {
				return []string{name}
			}
			return nil
		}
	}
	return nil
}

// TestFlagsAndManual compares the flags of the programs with what the documents say.
func TestFlagsAndManual(t *testing.T) {
	flags := settings(t)
	var documents, manual, table strings.Builder
	for _, pattern := range []string{"README.md", ".github/*.md", "deploy/README.md", "deploy/manual/*.md"} {
		paths, err := filepath.Glob(filepath.Join(moduleRoot, pattern))
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
		for _, name := range flags {
			text := manual.String()
			if strings.Contains(name, ".") && !strings.HasSuffix(name, "-file") { // -file: the file of a secret
				text = table.String()
			}
			if !regexp.MustCompile(`-` + regexp.QuoteMeta(name) + `(?:[^a-z0-9.-]|$)`).MatchString(text) {
				t.Errorf("-%s is not there", name)
			}
		}
	})
	t.Run("every setting that a document names is one", func(t *testing.T) {
		variables := map[string]bool{}
		for _, name := range flags {
			variables[strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(name))] = true
		}
		for _, m := range namedFlag.FindAllStringSubmatch(documents.String(), -1) {
			if !slices.Contains(flags, m[1]) {
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
