// Package upgrade_test upgrades the last release: the programs of this source start on data that the release has left behind, and
// take over from its programs one at a time under load.
//
// testdata has a folder per release with its source, which is built for the tests, and its data, with clicks at each stage:
// counted, in the topic, and in a spool after a kill. See the README there. The tests build two sets of programs and take minutes,
// so make test-deploy runs them and make test does not.
package upgrade_test

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"

	"linkstream/deploy/testengines/enginetest"
)

// release is the folder in testdata of the last release.
const release = "e3c035d"

var engines enginetest.Engines

func TestMain(m *testing.M) {
	flag.Parse()
	goleak.VerifyTestMain(suite{engines.Of(m)})
}

// suite runs the tests and then removes the built programs.
type suite struct{ tests interface{ Run() int } }

func (s suite) Run() int {
	code := s.tests.Run()
	os.RemoveAll(builtDir)
	return code
}
