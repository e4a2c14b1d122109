package auth_test

import (
	"testing"

	"linkstream/api/auth"
	"linkstream/schema/sqlite/sqlitetest"
)

func BenchmarkAuthenticate(b *testing.B) {
	store := sqlitetest.New(b)
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

func BenchmarkHashPassword(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		auth.HashPassword("correct horse")
	}
}
