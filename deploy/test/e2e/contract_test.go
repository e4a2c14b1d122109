//go:build engines

package e2e_test

import (
	"path/filepath"
	"testing"

	"linkstream/api/rest/resttest"
)

// TestContract tests what the API's document promises, on services. The tests of api/rest do it on SQLite.
func TestContract(t *testing.T) {
	t.Parallel()
	blocklist := filepath.Join(t.TempDir(), "hosts")
	writeFile(t, blocklist, "# a list of hosts\n0.0.0.0 "+resttest.UnsafeHost+" # a comment\n")
	s := startSystem(t, "LINKSTREAM_API_BLOCKLIST="+blocklist)
	resttest.Test(t, resttest.System{API: s.api, Short: s.edge, Admin: s.admin})
}
