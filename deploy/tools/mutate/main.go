// Mutate changes the statements of packages one by one, runs the tests of the package on each change, and prints the
// changes that no test notices, among them all changes of statements that no test runs. It changes no file: the
// compiler reads the changed one from elsewhere (go build -overlay).
//
//	go run ./deploy/tools/mutate [-timeout 2m] [-tags engines] [-also PACKAGE] [-run PATTERN]
//		[-lines FILE.go:FIRST-LAST] [PACKAGE...]
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/tools/cover"
)

// protocol are the packages that count each click exactly once.
var protocol = []string{"./edge/spool", "./ingest/worker", "./ingest/count", "./edge/resolve/snapshot",
	"./deploy/migrate-to"}

func main() {
	timeout := flag.Duration("timeout", 2*time.Minute, "`time` that the tests of a change may take; a change that takes "+
		"longer is noticed")
	tags := flag.String("tags", "", "`build tags` of the tests: engines for tests on engines")
	also := flag.String("also", "", "a `package` whose tests are run, too: ./deploy/test/simulation proves the protocol")
	tests := flag.String("run", "", "run the tests that match a `pattern` only")
	lines := flag.String("lines", "", "change `file:first-last` only")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	packages := flag.Args()
	if len(packages) == 0 {
		packages = protocol
	}
	for _, dir := range packages {
		m := mutator{dir: dir, timeout: *timeout, tags: *tags, also: *also, tests: *tests}
		if err := m.run(ctx, *lines); err != nil {
			fmt.Fprintln(os.Stderr, "mutate:", err)
			os.Exit(1)
		}
	}
}

// mutator changes one package.
type mutator struct {
	dir     string
	timeout time.Duration
	tags    string
	also    string // "" or a package whose tests use this one
	tests   string
}

// run prints the changes that survive the tests.
func (m mutator) run(ctx context.Context, lines string) error {
	only, first, last, err := parseLines(lines)
	if err != nil {
		return err
	}
	ran, err := m.coverage(ctx)
	if err != nil {
		return err
	}
	paths, err := filepath.Glob(filepath.Join(m.dir, "*.go"))
	if err != nil {
		return err
	}
	tried, survived := 0, 0
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") || only != "" && filepath.Base(path) != only {
			continue
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		changes, err := changesOf(path, source)
		if err != nil {
			return err
		}
		for _, c := range changes {
			if c.line < first || c.line > last {
				continue
			}
			result := notRun
			if ran.covers(filepath.Base(path), c.line, c.column) {
				if result, err = m.try(ctx, c, path, source); err != nil {
					return err
				}
			}
			if result != unbuildable {
				tried++
			}
			if result == unnoticed || result == notRun {
				survived++
				fmt.Printf("%s:%d: %s: %s\n", path, c.line, result, c.what)
			}
		}
	}
	fmt.Printf("%s: %d of %d changes survive\n", m.dir, survived, tried)
	return nil
}

// parseLines parses FILE.go:FIRST-LAST. "" is every line of every file.
func parseLines(s string) (file string, first, last int, err error) {
	if s == "" {
		return "", 1, math.MaxInt, nil
	}
	file, numbers, _ := strings.Cut(s, ":")
	if _, err := fmt.Sscanf(numbers, "%d-%d", &first, &last); err != nil {
		return "", 0, 0, fmt.Errorf("-lines %q: want FILE.go:FIRST-LAST", s)
	}
	return file, first, last, nil
}

// blocks are the blocks of a package that its tests run, by file name.
type blocks map[string][]cover.ProfileBlock

// covers reports whether a test may run what stands at a place. Conditions of cases are in no block. A file of another
// system has none.
func (b blocks) covers(file string, line, column int) bool {
	for _, k := range b[file] {
		if (line > k.StartLine || line == k.StartLine && column >= k.StartCol) &&
			(line < k.EndLine || line == k.EndLine && column <= k.EndCol) {
			return k.Count > 0
		}
	}
	return len(b[file]) > 0
}

// coverage runs the tests of the unchanged package.
func (m mutator) coverage(ctx context.Context) (blocks, error) {
	file, err := os.CreateTemp("", "linkstream-mutate-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if output, err := m.goTest(ctx, "-coverpkg", m.dir, "-coverprofile", file.Name()); err != nil {
		return nil, fmt.Errorf("%s fails without a change: %w\n%s", m.dir, err, output)
	}
	profiles, err := cover.ParseProfiles(file.Name())
	if err != nil {
		return nil, err
	}
	ran := make(blocks)
	for _, p := range profiles {
		ran[filepath.Base(p.FileName)] = p.Blocks
	}
	return ran, nil
}

func (m mutator) goTest(ctx context.Context, flags ...string) (output []byte, err error) {
	args := append([]string{"test", "-tags", m.tags, "-run", m.tests, "-vet=off", "-count=1", "-failfast", "-timeout",
		m.timeout.String()}, flags...)
	args = append(args, m.dir)
	if m.also != "" {
		args = append(args, m.also)
	}
	return exec.CommandContext(ctx, "go", args...).CombinedOutput()
}

// change is one change of a file.
type change struct {
	line, column int
	what         string
	begin, end   int // the replaced bytes
	text         string
}

// changesOf returns the changes of a file.
func changesOf(path string, source []byte) (changes []change, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	at := func(p token.Pos) int { return set.Position(p).Offset }
	text := func(n ast.Node) string { return string(source[at(n.Pos()):at(n.End())]) }
	replace := func(from, to ast.Node, what, replacement string) {
		p := set.Position(from.Pos())
		short, _, _ := strings.Cut(text(from), "\n")
		changes = append(changes, change{p.Line, p.Column, what + ": " + short, at(from.Pos()), at(to.End()), replacement})
	}
	list := func(statements []ast.Stmt) {
		for i, s := range statements {
			if !simple(s) {
				continue
			}
			replace(s, s, "drop", "")
			if i+1 < len(statements) && simple(statements[i+1]) && !independent(s, statements[i+1], text) {
				next := statements[i+1]
				replace(s, next, "swap with the next", text(next)+string(source[at(s.End()):at(next.Pos())])+text(s))
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			list(n.List)
		case *ast.CaseClause:
			list(n.Body)
		case *ast.IfStmt:
			replace(n.Cond, n.Cond, "negate", "!("+text(n.Cond)+")")
		case *ast.BinaryExpr:
			if other, found := offByOne[n.Op]; found {
				replace(n, n, "off by one", text(n.X)+" "+other.String()+" "+text(n.Y))
			} else if one, is := n.Y.(*ast.BasicLit); is && one.Value == "1" && (n.Op == token.ADD || n.Op == token.SUB) {
				replace(n, n, "off by one", text(n.X))
			}
		}
		return true
	})
	return changes, nil
}

var offByOne = map[token.Token]token.Token{token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ,
	token.GEQ: token.GTR}

// simple reports whether a statement can be dropped: it declares nothing that others use, and does more than to leave
// its block.
func simple(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ExprStmt, *ast.IncDecStmt, *ast.DeferStmt, *ast.GoStmt, *ast.SendStmt:
		return true
	case *ast.AssignStmt:
		return s.Tok != token.DEFINE
	case *ast.IfStmt:
		return s.Init != nil // if err := f(); err != nil
	}
	return false
}

// independent reports whether two assignments have the same effect in either order: they call no function but those of
// the language, and neither names what the other one assigns.
func independent(a, b ast.Stmt, text func(ast.Node) string) bool {
	assigned, named := [2]map[string]bool{{}, {}}, [2]map[string]bool{{}, {}}
	for i, s := range []ast.Stmt{a, b} {
		assignment, is := s.(*ast.AssignStmt)
		if !is {
			return false
		}
		for _, to := range assignment.Lhs {
			assigned[i][text(to)+"."] = true
		}
		pure := true
		ast.Inspect(s, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				f, is := n.Fun.(*ast.Ident)
				pure = pure && is && types.Universe.Lookup(f.Name) != nil
			case *ast.StarExpr, *ast.IndexExpr, *ast.FuncLit, *ast.UnaryExpr:
				pure = false
			case *ast.Ident, *ast.SelectorExpr:
				named[i][text(n)+"."] = true
				return false
			}
			return true
		})
		if !pure {
			return false
		}
	}
	for i := range assigned {
		for to := range assigned[i] {
			for name := range named[1-i] {
				if strings.HasPrefix(name, to) || strings.HasPrefix(to, name) {
					return false
				}
			}
		}
	}
	return true
}

// result is what the tests say of a change.
type result string

const (
	noticed     result = "noticed"
	unnoticed   result = "no test fails"
	notRun      result = "no test runs it"
	unbuildable result = "unbuildable"
)

// try runs the tests with a change of the source of a file.
func (m mutator) try(ctx context.Context, c change, path string, source []byte) (result, error) {
	temporary, err := os.MkdirTemp("", "linkstream-mutate-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temporary)
	changed := filepath.Join(temporary, filepath.Base(path))
	if err := os.WriteFile(changed, bytes.Join([][]byte{source[:c.begin], source[c.end:]}, []byte(c.text)),
		0o600); err != nil {
		return "", err
	}
	whole, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{whole: changed}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(temporary, "overlay.json"), overlay, 0o600); err != nil {
		return "", err
	}
	output, err := m.goTest(ctx, "-overlay", filepath.Join(temporary, "overlay.json"))
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err == nil:
		return unnoticed, nil
	case bytes.Contains(output, []byte("[build failed]")):
		return unbuildable, nil
	}
	return noticed, nil
}
