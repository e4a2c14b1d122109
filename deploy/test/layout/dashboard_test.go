package layout_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// A file of the dashboard belongs to a noun, which its name begins with, or to the page's frame. A noun uses itself and
// the frame, and the frame uses no noun. The roots join the nouns.
var (
	dashboardNouns = []string{"account", "domain", "link", "report", "tag", "token", "webhook"}
	dashboardRoots = []string{"dashboard", "overview"}
)

const dashboardFrame = "the frame"

func TestDashboardFiles(t *testing.T) {
	violations, err := dashboardArrows(os.DirFS(moduleRoot + "/api/dashboard"))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range violations {
		t.Error(v)
	}
}

// dashboardArrows returns the uses of declarations that the rule forbids.
func dashboardArrows(tree fs.FS) (violations []string, err error) {
	names, err := fs.Glob(tree, "*.go")
	if err != nil {
		return nil, err
	}
	set, files := token.NewFileSet(), []*ast.File(nil)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		content, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(set, name, content, 0)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	uses := map[*ast.Ident]types.Object{}
	check := types.Config{Importer: noImports{}, Error: func(error) {}} // what other packages declare does not matter
	pkg, _ := check.Check("dashboard", set, files, &types.Info{Uses: uses})
	for used, object := range uses {
		_, method := object.(*types.Func)
		if object.Pkg() != pkg || object.Parent() != pkg.Scope() && !method {
			continue
		}
		from, to := path.Base(set.Position(used.Pos()).Filename), path.Base(set.Position(object.Pos()).Filename)
		at, of := nounOf(from), nounOf(to)
		if at != of && of != dashboardFrame && !slices.Contains(dashboardRoots, at) {
			violations = append(violations, fmt.Sprintf("%s uses %s of %s", from, object.Name(), to))
		}
	}
	slices.Sort(violations)
	return slices.Compact(violations), nil
}

// nounOf returns the noun or the root that a file belongs to, or dashboardFrame.
func nounOf(file string) string {
	noun, _, _ := strings.Cut(strings.TrimSuffix(file, ".go"), "_")
	if slices.Contains(dashboardNouns, noun) || slices.Contains(dashboardRoots, noun) {
		return noun
	}
	return dashboardFrame
}

// noImports finds no package.
type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not loaded") }
