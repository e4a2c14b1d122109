package e2e_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"linkstream/schema/testkit"
)

// TestLayoutSkippedTests checks that make test skips by name what make test-deploy runs, and nothing else.
func TestLayoutSkippedTests(t *testing.T) {
	violations, err := skippedTests(os.DirFS(moduleRoot))
	testkit.Must(t, err)
	for _, v := range violations {
		t.Error(v)
	}
	t.Run("the rule is strict", func(t *testing.T) {
		test := func(name string) *fstest.MapFile {
			return &fstest.MapFile{Data: []byte("func " + name + "(t *testing.T) {\n")}
		}
		violations, err := skippedTests(fstest.MapFS{
			"Makefile":       {Data: []byte("DEPLOYED = /deploy/(image)$$\nFAULTS = ^TestFaults$$\nSLOW = ^TestA$$/^B$$|^Test(Stop|Gone)$$|^TestB(C)$$\nSLOW_IN = ./edge\n")},
			"edge/a_test.go": test("TestStop"), "api/a_test.go": test("TestStop"), "schema/a_test.go": test("TestA"),
			"deploy/e2e/a_test.go": test("TestFaults"), "deploy/image/a_test.go": test("TestFaults"),
		})
		testkit.Must(t, err)
		testkit.Equal(t, "violations", violations, []string{"SLOW has TestB(C)$, which is neither Test(A|B)$ nor a subtest",
			"SLOW names TestGone, which ./edge does not have",
			"SLOW names TestStop, which api has, too: make test skips it, and no other target runs it"})
	})
}

var (
	testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	testNames    = regexp.MustCompile(`^Test(\(([\w|]+)\)|\w+)\$$`)
)

// skippedTests returns the names in the Makefile's FAULTS and SLOW that do not stand for one test in the packages where make
// test-deploy runs them. Names of subtests are not checked.
func skippedTests(tree fs.FS) (violations []string, err error) {
	packages, err := packagesOfTests(tree)
	if err != nil {
		return nil, err
	}
	content, err := fs.ReadFile(tree, "Makefile")
	if err != nil {
		return nil, err
	}
	value := func(name string) string {
		match := regexp.MustCompile(`(?m)^` + name + ` *= *(.*)$`).FindSubmatch(content)
		if match == nil {
			err = errors.Join(err, fmt.Errorf("the Makefile has no %s", name))
			return ""
		}
		return strings.ReplaceAll(string(match[1]), "$$", "$")
	}
	deployed, compileErr := regexp.Compile(value("DEPLOYED"))
	if err = errors.Join(err, compileErr); err != nil {
		return nil, err
	}
	for variable, runIn := range map[string]string{"FAULTS": "./deploy/e2e", "SLOW": value("SLOW_IN")} {
		names, unread := namesOfTests(value(variable))
		for _, pattern := range unread {
			violations = append(violations, fmt.Sprintf("%s has %s, which is neither Test(A|B)$ nor a subtest", variable, pattern))
		}
		for _, name := range names {
			there := slices.DeleteFunc(slices.Clone(packages[name]), func(p string) bool { return deployed.MatchString("/" + p) })
			elsewhere := slices.DeleteFunc(slices.Clone(there), func(p string) bool { return slices.Contains(strings.Fields(runIn), "./"+p) })
			if len(there) == len(elsewhere) {
				violations = append(violations, fmt.Sprintf("%s names %s, which %s does not have", variable, name, runIn))
			}
			for _, p := range elsewhere {
				violations = append(violations,
					fmt.Sprintf("%s names %s, which %s has, too: make test skips it, and no other target runs it", variable, name, p))
			}
		}
	}
	slices.Sort(violations)
	return violations, err
}

// namesOfTests returns the names of whole tests in a pattern such as ^TestA$/^B$|^Test(C|D)$, here C and D, and the alternatives that
// it cannot read.
func namesOfTests(pattern string) (names, unread []string) {
	for _, alternative := range strings.Split(pattern, "|^") {
		match := testNames.FindStringSubmatch(strings.TrimPrefix(alternative, "^"))
		switch {
		case match == nil && strings.Contains(alternative, "$/"): // a subtest
		case match == nil:
			unread = append(unread, alternative)
		case match[2] == "":
			names = append(names, "Test"+match[1])
		default:
			for _, name := range strings.Split(match[2], "|") {
				names = append(names, "Test"+name)
			}
		}
	}
	return names, unread
}

// packagesOfTests returns the folders that have a test, by its name.
func packagesOfTests(tree fs.FS) (map[string][]string, error) {
	packages := map[string][]string{}
	err := walkSources(tree, func(name string) error {
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		content, err := fs.ReadFile(tree, name)
		for _, match := range testFunction.FindAllSubmatch(content, -1) {
			if test := string(match[1]); !slices.Contains(packages[test], path.Dir(name)) {
				packages[test] = append(packages[test], path.Dir(name))
			}
		}
		return err
	})
	return packages, err
}
