// Package layout_test tests the rules for the source: who imports whom, what programs link, how long files and
// functions get, what the top level holds, and which requirements are direct. make check runs it.
package layout_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"
)

// These tests check the rules for files: how long files, functions and lines get, what the top level holds, and where
// links lead. Each rule is a function that returns violations. TestLayout applies it to the module, TestLayoutRules to
// a tree that breaks it. The rules for packages are in imports_test.go.

const (
	moduleRoot       = "../../.."
	maxFileLines     = 500
	maxFunctionLines = 60
	maxColumns       = 120 // a tab is one
)

var (
	topLevel = []string{"edge", "api", "ingest", "schema", "bench", "deploy", "go.mod", "go.sum", "Makefile", "README.md",
		"CHANGELOG.md", "LICENSE"}
	outputs  = []string{"data", "build"} // of make run and make build, not kept in the repository
	badNames = []string{"util", "utils", "common", "helper", "helpers", "http"}
)

func TestLayout(t *testing.T) {
	tree := os.DirFS(moduleRoot)
	for name, rule := range map[string]func(fs.FS) ([]string, error){
		"no file is long":                    longFiles,
		"no function is long":                longFunctions,
		"no line is wide":                    wideLines,
		"the top level holds what it should": extraTopLevel,
		"links in documents lead somewhere":  deadLinks,
	} {
		t.Run(name, func(t *testing.T) {
			violations, err := rule(tree)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range violations {
				t.Error(v)
			}
		})
	}
}

// longFiles returns the Go files, tests aside, that have too many lines.
func longFiles(tree fs.FS) (violations []string, err error) {
	err = walkCode(tree, func(name string, content []byte) error {
		if n := bytes.Count(content, []byte("\n")); n > maxFileLines {
			violations = append(violations, fmt.Sprintf("%s has %d lines, more than %d", name, n, maxFileLines))
		}
		return nil
	})
	return violations, err
}

// longFunctions returns the functions, those of tests aside, that have too many lines.
func longFunctions(tree fs.FS) (violations []string, err error) {
	err = walkCode(tree, func(name string, content []byte) error {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, content, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := files.Position(f.End()).Line - files.Position(f.Pos()).Line + 1; n > maxFunctionLines {
				violations = append(violations,
					fmt.Sprintf("%s: %s has %d lines, more than %d", name, f.Name.Name, n, maxFunctionLines))
			}
		}
		return nil
	})
	return violations, err
}

// wideLines returns the lines of Go files, tests included, that have too many columns. Generated code has its
// generator's.
func wideLines(tree fs.FS) (violations []string, err error) {
	err = walkSources(tree, func(name string) error {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, ".pb.go") {
			return nil
		}
		content, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(content), "\n") {
			if n := utf8.RuneCountInString(line); n > maxColumns {
				violations = append(violations, fmt.Sprintf("%s:%d has %d columns, more than %d", name, i+1, n, maxColumns))
			}
		}
		return nil
	})
	return violations, err
}

// walkCode calls visit for each Go file of the module, tests aside.
func walkCode(tree fs.FS, visit func(name string, content []byte) error) error {
	return walkSources(tree, func(name string) error {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		content, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		return visit(name, content)
	})
}

// walkSources calls visit for each file of the module that is neither hidden nor the output of a program.
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

// extraTopLevel returns the names that do not belong to the top level.
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

func TestLayoutRules(t *testing.T) {
	lines := func(n int) *fstest.MapFile { return &fstest.MapFile{Data: bytes.Repeat([]byte("//\n"), n)} }
	function := func(n int) *fstest.MapFile {
		return &fstest.MapFile{Data: fmt.Appendf(nil, "package p\n\nfunc long() {%s}\n", strings.Repeat("\n", n-1))}
	}
	markdown := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, c := range map[string]struct {
		rule func(fs.FS) ([]string, error)
		tree fstest.MapFS
		want []string // how the violations begin
	}{
		"long files": {longFiles, fstest.MapFS{"edge/main.go": lines(500), "edge/long.go": lines(501),
			"edge/long_test.go": lines(900), "data/generated.go": lines(900), ".git/hook.go": lines(900)},
			[]string{"edge/long.go has 501 lines"}},
		"long functions": {longFunctions, fstest.MapFS{"edge/a.go": function(60), "edge/b.go": function(61),
			"edge/c_test.go": function(99)},
			[]string{"edge/b.go: long has 61 lines"}},
		"wide lines": {wideLines, fstest.MapFS{"edge/a.go": {Data: []byte("//" + strings.Repeat("ü", 118) + "\n")},
			"edge/b_test.go": {Data: []byte("\n//" + strings.Repeat("ü", 119))},
			"edge/c.pb.go":   {Data: []byte("//" + strings.Repeat("x", 119))}},
			[]string{"edge/b_test.go:2 has 121 columns"}},
		"extra names at the top level": {extraTopLevel, fstest.MapFS{"go.mod": lines(1), "edge/main.go": lines(1),
			"data/links.db": lines(1), ".git/hook.go": lines(1), "internal/x.go": lines(1), "notes.txt": lines(1)},
			[]string{"internal does not belong", "notes.txt does not belong"}},
		"dead links": {deadLinks,
			fstest.MapFS{"README.md": markdown("# A `b`, c\n[1](#a-b-c) [2](#d) [3](edge) [4](api) [5](https://x.org/y)\n"),
				"edge/x.md":      markdown("[1](../README.md#a-b-c) [2](../README.md#a)\n```\n# Z\n[3](none)\n```\n[4](#z)\n"),
				".github/top.md": markdown(`<img src="../edge/x.md"><img src="x.png">`)},
			[]string{"README.md: #d leads", "README.md: api leads", "edge/x.md: ../README.md#a leads", "edge/x.md: #z leads",
				".github/top.md: x.png leads"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.rule(c.tree)
			if err != nil || !slices.EqualFunc(got, c.want, strings.HasPrefix) {
				t.Errorf("violations: %q, want %q, error: %v", got, c.want, err)
			}
		})
	}
}
