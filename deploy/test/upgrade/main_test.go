// Package upgrade_test upgrades the last release: the programs of this source start on data that its programs have left behind, take
// over from them one at a time under load, and run beside them. It also moves a standalone service to the real engines.
//
// testdata has a folder per release with its source, which is built for the tests, and its data, with clicks at each stage:
// counted, in the topic, and in a spool after a kill. See the README there.
package upgrade_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"linkstream/deploy/test/launch"
	"linkstream/deploy/tools/engines/enginetest"
)

const (
	release  = "v1.0.0" // the last one, and its folder in testdata
	fixtures = "testdata"
)

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
