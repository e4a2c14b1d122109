package sqlite_test

import (
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

func BenchmarkLeaseRequests(b *testing.B) {
	links, owner := manyLinks(b, 1)
	token := schema.Token{AccountID: owner.ID, CreatedAt: time.Now()}
	testkit.Must(b, links.CreateToken(b.Context(), &token))
	window := time.Now().Truncate(time.Minute)
	b.ReportAllocs()
	for b.Loop() {
		_, _, err := links.LeaseRequests(b.Context(), token.ID, window, 2000)
		testkit.Must(b, err)
	}
}
