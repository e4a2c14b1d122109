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

// wideLines returns the lines of Go files, tests included, that have too many columns.
func wideLines(tree fs.FS) (violations []string, err error) {
	err = walkSources(tree, func(name string) error {
		if path.Ext(name) != ".go" || generated(name) {
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

// generated reports whether a generator has written a file, which then has its lengths and widths.
func generated(name string) bool {
	return strings.HasSuffix(name, ".pb.go") || strings.HasSuffix(name, ".gen.go")
}

// walkCode calls visit for each Go file of the module that people have written, tests aside.
func walkCode(tree fs.FS, visit func(name string, content []byte) error) error {
	return walkSources(tree, func(name string) error {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || generated(name) {
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
