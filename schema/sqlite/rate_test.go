package sqlite_test

import (
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/storetest"
)

func TestRates(t *testing.T) { storetest.TestRateStore(t, freshLinks) }

func BenchmarkLeaseRequests(b *testing.B) {
	links, owner := manyLinks(b, 1)
	token := schema.Token{AccountID: owner.ID, CreatedAt: time.Now()}
	if err := links.CreateToken(b.Context(), &token); err != nil {
		b.Fatal(err)
	}
	window := time.Now().Truncate(time.Minute)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := links.LeaseRequests(b.Context(), token.ID, window, 2000); err != nil {
			b.Fatal(err)
		}
	}
}
