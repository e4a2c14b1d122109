package access_test

import (
	"testing"

	"linkstream/api/access"
)

func BenchmarkAuthenticate(b *testing.B) {
	store := newStore(b)
	known, _ := addToken(b, store, "me@example.org")
	unknown, _ := access.NewToken(1, "never stored")
	for name, secret := range map[string]string{"known": known, "unknown": unknown} {
		b.Run(name, func(b *testing.B) {
			auth := newAuthenticator(b, store)
			header := bearer(secret)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					auth.Authenticate(b.Context(), header)
				}
			})
		})
	}
}

func BenchmarkLimiter(b *testing.B) {
	limiter := access.NewLimiter()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for id := int64(0); pb.Next(); id++ {
			limiter.Allow(id % 1000)
		}
	})
}

func BenchmarkHashPassword(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		access.HashPassword("correct horse")
	}
}
