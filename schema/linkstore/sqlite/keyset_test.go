package sqlite_test

import (
	"path/filepath"
	"testing"

	"linkstream/schema/storetest"
)

func TestChangesUnderWay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "links.db")
	storetest.TestChangesUnderWay(t, openLinks(t, path), openLinks(t, path))
}

func BenchmarkPages(b *testing.B) {
	storetest.BenchmarkPages(b, openLinks(b, filepath.Join(b.TempDir(), "links.db")))
}
