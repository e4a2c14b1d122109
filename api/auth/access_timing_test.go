package auth_test

import (
	"context"
	"testing"
	"time"

	"linkstream/api/auth"
	"linkstream/api/ratelimit"
)

func BenchmarkAuthenticate(b *testing.B) {
	store := newStore(b)
	known, _ := addToken(b, store, "me@example.org")
	unknown, _ := auth.NewToken(1, "never stored")
	for name, secret := range map[string]string{"known": known, "unknown": unknown} {
		b.Run(name, func(b *testing.B) {
			authenticator := newAuthenticator(b, store)
			header := bearer(secret)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					authenticator.Authenticate(b.Context(), header)
				}
			})
		})
	}
}

// boundless grants more in a lease than any benchmark asks for: what a lease costs is the store's benchmark.
type boundless struct{ left int }

func (b boundless) LeaseRequests(context.Context, int64, time.Time, int) (granted, left int, err error) {
	return b.left, b.left, nil
}

func BenchmarkLimiter(b *testing.B) {
	for name, store := range map[string]boundless{"within a lease": {1 << 60}, "refused": {0}} {
		b.Run(name, func(b *testing.B) {
			limiter := ratelimit.NewLimiter(store)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for id := int64(0); pb.Next(); id++ {
					limiter.Allow(b.Context(), id%1000)
				}
			})
		})
	}
}

func BenchmarkHashPassword(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		auth.HashPassword("correct horse")
	}
}
