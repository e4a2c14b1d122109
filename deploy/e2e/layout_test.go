package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// The rules of the tree: who may import whom, what packages are called, how long a file gets and what the top level
// holds. Each is a function that returns violations, which TestLayout applies to the module and TestLayoutRules to
// what breaks it.

const (
	module       = "linkstream"
	maxFileLines = 500
)

var (
	services    = []string{"edge", "api", "ingest"}
	stores      = []string{"schema/postgres", "schema/sqlite", "schema/clickhouse"}
	drivers     = append([]string{"schema/stream"}, stores...) // what speaks to an engine
	groupCommit = "schema/groupcommit"                         // what stores have in common without an engine
	topLevel    = []string{"edge", "api", "ingest", "schema", "bench", "deploy", "go.mod", "go.sum", "Makefile", "README.md",
		"CHANGELOG.md", "LICENSE"}
	outputs  = []string{"data", "build"} // of make run and make build, not kept in the repository
	badNames = []string{"util", "utils", "common", "helper", "helpers", "http"}
)

func TestLayout(t *testing.T) {
	tree := os.DirFS(moduleRoot)
	t.Run("packages import only what they may", func(t *testing.T) {
		for _, p := range listPackages(t) {
			for _, v := range importViolations(p) {
				t.Error(v)
			}
			if v := nameViolation(p); v != "" {
				t.Error(v)
			}
		}
	})
	t.Run("no file is long", func(t *testing.T) {
		long, err := longFiles(tree)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range long {
			t.Error(v)
		}
	})
	t.Run("the top level holds what it should", func(t *testing.T) {
		extra, err := extraTopLevel(tree)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range extra {
			t.Error(v)
		}
	})
}

// goPackage is what go list says of a package. Imports of external tests, which may import anything, are left out.
type goPackage struct {
	ImportPath  string
	Name        string
	Imports     []string
	TestImports []string // of tests inside of the package
}

func listPackages(t *testing.T) (packages []goPackage) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Name,Imports,TestImports", "./...")
	cmd.Dir = moduleRoot
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	if len(packages) < 10 {
		t.Fatalf("go list knows only %d packages", len(packages))
	}
	return packages
}

// importViolations returns the imports that a package must not have.
func importViolations(p goPackage) (violations []string) {
	from := strings.TrimPrefix(p.ImportPath, module+"/")
	for i, imported := range slices.Concat(p.Imports, p.TestImports) {
		rule := ""
		if to, ours := strings.CutPrefix(imported, module+"/"); ours && p.Name != "main" && !within(from, "deploy") {
			rule = brokenRule(from, to)
		} else if !ours && from == "schema" && i < len(p.Imports) && !standard(imported) &&
			!within(imported, "google.golang.org/protobuf") {
			rule = "schema imports the standard library and protobuf only"
		}
		if rule != "" {
			violations = append(violations, fmt.Sprintf("%s imports %s: %s", p.ImportPath, imported, rule))
		}
	}
	return violations
}

// brokenRule returns the rule that forbids a package to import another one, both of this module; "" if there is none.
// Neither is a main or belongs to deploy/, both of which import what they like.
func brokenRule(from, to string) string {
	if within(to, "deploy") {
		return "only mains and deploy/ import deploy/"
	}
	if store := root(to, stores); store != "" && root(from, stores) != store {
		return "only mains, deploy/ and external tests import a store"
	}
	if service := root(to, services); service != "" && root(from, services) != service {
		switch {
		case within(from, "schema"):
			return "schema knows no service"
		case root(from, services) != "":
			return "services never import each other"
		}
	}
	if own := root(from, drivers); own != "" && to != "schema" && to != groupCommit && !within(to, own) {
		return "stores and stream import schema and groupCommit alone"
	}
	if from == groupCommit && to != "schema" {
		return "groupCommit imports schema alone"
	}
	if from == "schema" {
		return "schema imports the standard library and protobuf only"
	}
	return ""
}

// root returns which of the folders holds the package, "" if none does.
func root(pkg string, folders []string) string {
	for _, folder := range folders {
		if within(pkg, folder) {
			return folder
		}
	}
	return ""
}

func within(pkg, folder string) bool { return pkg == folder || strings.HasPrefix(pkg, folder+"/") }

// standard reports whether a package is of the standard library, whose paths do not begin with the name of a host.
func standard(pkg string) bool {
	first, _, _ := strings.Cut(pkg, "/")
	return !strings.Contains(first, ".")
}

func nameViolation(p goPackage) string {
	if slices.Contains(badNames, p.Name) {
		return fmt.Sprintf("%s: a package is named by its role, not %q", p.ImportPath, p.Name)
	}
	return ""
}

// longFiles returns the Go files, tests aside, that have too many lines.
func longFiles(tree fs.FS) (violations []string, err error) {
	err = walkSources(tree, func(name string) error {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		content, err := fs.ReadFile(tree, name)
		if n := bytes.Count(content, []byte("\n")); n > maxFileLines {
			violations = append(violations, fmt.Sprintf("%s has %d lines, more than %d", name, n, maxFileLines))
		}
		return err
	})
	return violations, err
}

// walkSources calls visit for each file of the module that is not hidden, nor the output of a program.
func walkSources(tree fs.FS, visit func(name string) error) error {
	return fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || name == ".":
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") || slices.Contains(outputs, name)):
			return fs.SkipDir
		case entry.IsDir():
			return nil
		}
		return visit(name)
	})
}

// extraTopLevel returns what stands at the top level and should not.
func extraTopLevel(tree fs.FS) (violations []string, err error) {
	entries, err := fs.ReadDir(tree, ".")
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, ".") && !slices.Contains(topLevel, name) && !slices.Contains(outputs, name) {
			violations = append(violations, fmt.Sprintf("%s does not belong to the top level", name))
		}
	}
	return violations, err
}

var importCases = []struct {
	from, name, to string
	allowed        bool
}{
	{"schema", "schema", "fmt", true},
	{"schema", "schema", "google.golang.org/protobuf/encoding/protowire", true},
	{"schema", "schema", "github.com/jackc/pgx/v5", false},
	{"schema", "schema", "google.golang.org/grpc", false},
	{"schema", "schema", "linkstream/schema/stream", false},
	{"schema/sqlite", "sqlite", "linkstream/schema", true},
	{"schema/sqlite", "sqlite", "modernc.org/sqlite", true},
	{"schema/sqlite", "sqlite", "linkstream/schema/stream", false},
	{"schema/sqlite", "sqlite", "linkstream/schema/postgres", false},
	{"schema/sqlite", "sqlite", "linkstream/api/rest", false},
	{"schema/sqlite", "sqlite", "linkstream/schema/groupcommit", true},
	{"schema/groupcommit", "groupcommit", "linkstream/schema", true},
	{"schema/groupcommit", "groupcommit", "linkstream/schema/stream", false},
	{"schema/stream", "stream", "linkstream/schema/clickhouse", false},
	{"schema/stream", "stream", "linkstream/schema/service", false},
	{"schema/storetest", "storetest", "linkstream/schema", true},
	{"schema/storetest", "storetest", "linkstream/schema/sqlite", false},
	{"schema/service", "service", "linkstream/edge/redirect", false},
	{"edge/redirect", "redirect", "linkstream/schema", true},
	{"edge/redirect", "redirect", "linkstream/edge/spool", true},
	{"edge/spool", "spool", "linkstream/schema/stream", true},
	{"edge/redirect", "redirect", "linkstream/schema/sqlite", false},
	{"edge/redirect", "redirect", "linkstream/api/auth", false},
	{"ingest/worker", "worker", "linkstream/edge/spool", false},
	{"api/rest", "rest", "linkstream/deploy/testengines", false},
	{"api", "main", "linkstream/schema/postgres", true},
	{"api", "main", "linkstream/schema/service", true},
	{"bench/redirect", "redirect", "linkstream/schema/clickhouse", false},
	{"deploy/standalone", "main", "linkstream/ingest/worker", true},
	{"deploy/testengines", "testengines", "linkstream/schema/sqlite", true},
}

func TestLayoutRules(t *testing.T) {
	for _, c := range importCases {
		t.Run(c.from+" imports "+c.to, func(t *testing.T) {
			p := goPackage{ImportPath: module + "/" + c.from, Name: c.name, Imports: []string{c.to}}
			if got := importViolations(p); (len(got) == 0) != c.allowed {
				t.Errorf("violations: %q, allowed: %v", got, c.allowed)
			}
		})
	}
	t.Run("a test inside of a package is no external test", func(t *testing.T) {
		p := goPackage{ImportPath: "linkstream/api/rest", Name: "rest", TestImports: []string{"linkstream/schema/sqlite"}}
		if len(importViolations(p)) == 0 {
			t.Error("allowed")
		}
	})
	t.Run("names that say nothing", func(t *testing.T) {
		for name, allowed := range map[string]bool{"rest": true, "http": false, "util": false, "helpers": false} {
			if got := nameViolation(goPackage{ImportPath: "linkstream/api/" + name, Name: name}); (got == "") != allowed {
				t.Errorf("%q: %q, allowed: %v", name, got, allowed)
			}
		}
	})
	lines := func(n int) *fstest.MapFile { return &fstest.MapFile{Data: bytes.Repeat([]byte("//\n"), n)} }
	tree := fstest.MapFS{"go.mod": lines(1), "edge/main.go": lines(500), "edge/long.go": lines(501),
		"edge/long_test.go": lines(900), "data/generated.go": lines(900), ".git/hook.go": lines(900),
		"internal/x.go": lines(1), "notes.txt": lines(1)}
	t.Run("long files", func(t *testing.T) {
		long, err := longFiles(tree)
		if err != nil || len(long) != 1 || !strings.HasPrefix(long[0], "edge/long.go ") {
			t.Errorf("violations: %q, error: %v", long, err)
		}
	})
	t.Run("extra names at the top level", func(t *testing.T) {
		extra, err := extraTopLevel(tree)
		if err != nil || len(extra) != 2 {
			t.Errorf("violations: %q, error: %v", extra, err)
		}
	})
}
