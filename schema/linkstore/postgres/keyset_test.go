//go:build engines

package postgres_test

import (
	"testing"

	"linkstream/schema/storetest"
)

func TestChangesUnderWay(t *testing.T) {
	t.Parallel()
	dsn := engines.Postgres(t)
	storetest.TestChangesUnderWay(t, openLinks(t, dsn).Store, openLinks(t, dsn).Store, openLinks(t, dsn).Store)
}

func BenchmarkPages(b *testing.B) {
	storetest.BenchmarkPages(b, openLinks(b, engines.Postgres(b)).Store)
}
