//go:build deploy

package outside_test

import (
	"path/filepath"
	"testing"

	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema/testkit"
)

// The tests of the API's description, api/rest/openapi.json, use generators of clients. The clients are compiled and
// call the running program.

const (
	description = "../../../api/rest/openapi.json"
	clientTools = "testdata/apiclients/tools"
)

// npm returns the folder of the installed tools.
func npm(t *testing.T) (modules string) {
	t.Helper()
	modules, err := testengines.NPMPackages(t.Context(), logger(t), clientTools)
	testkit.Must(t, err)
	return modules
}

// absolute returns the absolute form of a path.
func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	testkit.Must(t, err)
	return path
}
