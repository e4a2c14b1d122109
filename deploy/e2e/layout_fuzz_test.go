package e2e_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLayoutFuzzTargets checks that SECURITY.md names the fuzz targets that there are, and no others.
func TestLayoutFuzzTargets(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(moduleRoot, ".github", "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	there, err := fuzzTargets(os.DirFS(moduleRoot))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(there, namedTargets(string(text))); diff != "" {
		t.Errorf("fuzz targets that there are (-) and that SECURITY.md names (+):\n%s", diff)
	}
}

var (
	fuzzFunction = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)
	fuzzName     = regexp.MustCompile("`([a-z/]+)`|\\b(Fuzz\\w+)")
)

// fuzzTargets returns the fuzz targets of the module, each with the folder of its package.
func fuzzTargets(tree fs.FS) (targets []string, err error) {
	err = walkSources(tree, func(name string) error {
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		content, err := fs.ReadFile(tree, name)
		for _, match := range fuzzFunction.FindAllSubmatch(content, -1) {
			targets = append(targets, fmt.Sprintf("%s %s", path.Dir(name), match[1]))
		}
		return err
	})
	slices.Sort(targets)
	return targets, err
}

// namedTargets returns the fuzz targets in the last column of a table. A folder stands before its targets.
func namedTargets(text string) (targets []string) {
	for row := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
		folder := ""
		for _, match := range fuzzName.FindAllStringSubmatch(cells[len(cells)-1], -1) {
			if folder == "" || match[1] != "" {
				folder = match[1]
			}
			if match[2] != "" {
				targets = append(targets, folder+" "+match[2])
			}
		}
	}
	slices.Sort(targets)
	return targets
}
