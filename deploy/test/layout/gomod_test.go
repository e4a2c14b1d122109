package layout_test

import (
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// go.mod marks a requirement as // indirect if and only if no package of the module imports it. go mod tidy keeps it
// so, but needs modules that only tests of dependencies import, and not every proxy has them.

// goMod is what go mod edit -json prints.
type goMod struct {
	Require []struct {
		Path     string
		Indirect bool
	}
	Tool []struct{ Path string } // packages, whose modules count as indirect
}

func TestGoMod(t *testing.T) {
	for _, v := range goModViolations(readGoMod(t, filepath.Join(moduleRoot, "go.mod")),
		importers(t, os.DirFS(moduleRoot))) {
		t.Error(v)
	}
}

func readGoMod(t *testing.T, file string) (mod goMod) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json", file).Output()
	if err == nil {
		err = json.Unmarshal(out, &mod)
	}
	if err != nil {
		t.Fatalf("go mod edit -json: %v", err)
	}
	return mod
}

// importers returns a file that imports each package that is imported. It reads the files of all systems, as go mod
// tidy does.
func importers(t *testing.T, tree fs.FS) map[string]string {
	t.Helper()
	importer := map[string]string{}
	err := walkSources(tree, func(name string) error {
		if path.Ext(name) != ".go" {
			return nil
		}
		content, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, content, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			importer[imported] = name
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return importer
}

func goModViolations(mod goMod, importer map[string]string) (violations []string) {
	tools := map[string]bool{}
	for _, tool := range mod.Tool {
		tools[moduleOf(mod, tool.Path)] = true
	}
	directBy := map[string]string{}
	for imported, file := range importer {
		if m := moduleOf(mod, imported); m != "" {
			directBy[m] = file
		}
	}
	for _, r := range mod.Require {
		switch file, direct := directBy[r.Path]; {
		case direct && r.Indirect:
			violations = append(violations, fmt.Sprintf("go.mod: %s is marked // indirect, but %s imports it", r.Path, file))
		case !direct && !r.Indirect && !tools[r.Path]:
			violations = append(violations, fmt.Sprintf("go.mod: no package imports %s: mark it // indirect or remove it",
				r.Path))
		}
	}
	return violations
}

// moduleOf returns the required module that has the package, "" for the standard library and this module.
func moduleOf(mod goMod, pkg string) (module string) {
	for _, r := range mod.Require {
		if (pkg == r.Path || strings.HasPrefix(pkg, r.Path+"/")) && len(r.Path) > len(module) {
			module = r.Path
		}
	}
	return module
}
