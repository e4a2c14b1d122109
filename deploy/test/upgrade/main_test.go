//go:build deploy

// Package upgrade_test upgrades releases: the programs of this source start on data that the programs of each release
// have left behind, take over from those of the last one at a time under load, and run beside them. It also moves a
// standalone service to the real engines.
//
// testdata has a folder per release with its source, which is built for the tests, and its data, with clicks at each
// stage: counted, in the topic, and in a spool after a kill. See the README there.
package upgrade_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/mod/semver"

	"linkstream/deploy/test/launch"
	"linkstream/deploy/tools/engines/enginetest"
	"linkstream/schema/testkit"
)

const fixtures = "testdata"

// releases returns the names of all releases, the last one at the end.
func releases(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(fixtures)
	testkit.Must(t, err)
	for _, entry := range entries {
		if semver.IsValid(entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	if len(names) == 0 {
		t.Fatalf("%s has no release", fixtures)
	}
	slices.SortFunc(names, semver.Compare)
	return names
}

func lastRelease(t *testing.T) string {
	t.Helper()
	all := releases(t)
	return all[len(all)-1]
}

// builtDir has a folder per built version.
var builtDir = filepath.Join(os.TempDir(), fmt.Sprintf("linkstream-upgrade-%d", os.Getpid()))

var engines enginetest.Engines

func TestMain(m *testing.M) {
	flag.Parse()
	goleak.VerifyTestMain(launch.Of(suite{engines.Of(m)}))
}

// suite runs the tests and then removes the built versions.
type suite struct{ tests launch.Runner }

func (s suite) Run() int {
	if err := os.MkdirAll(builtDir, 0o700); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(builtDir)
	return s.tests.Run()
}
