package postgres_test

import (
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/postgres"
	"linkstream/schema/testkit"
)

// TestUpgrade goes on with a database of before sessions.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	dsn := engines.Postgres(t)
	testkit.Must(t, postgres.MigrateOld(t.Context(), dsn))
	raw := openRaw(t, dsn)
	for _, statement := range []string{
		`INSERT INTO accounts (email, password_hash, suspended, link_count, created_at)
			VALUES ('a@example.org', 'hash', false, 1, now())`,
		`INSERT INTO tokens (account_id, name, prefix, digest, created_at)
			VALUES (1, 'name', 'ls_', decode(repeat('00', 32), 'hex'), now())`,
		`INSERT INTO domains (account_id, host, challenge, created_at) VALUES (1, 'go.example.org', '', now())`,
		`INSERT INTO links (account_id, domain_id, hash, url, active, ordinal, created_at)
			VALUES (1, 1, 'hash', 'https://example.org/', true, 1, now())`,
	} {
		exec(t, raw, statement)
	}
	links := openLinks(t, dsn)
	t.Run("a token of before was never used", func(t *testing.T) {
		token, account, err := links.TokenByDigest(t.Context(), [32]byte{})
		if err != nil || token.Name != "name" || !token.UsedAt.IsZero() || account.Email != "a@example.org" {
			t.Fatalf("got %+v of %+v, error %v", token, account, err)
		}
		testkit.Must(t, links.UseTokens(t.Context(), map[int64]time.Time{token.ID: time.Now()}))
	})
	t.Run("a domain of before keeps its links", func(t *testing.T) {
		testkit.WantCode(t, links.DeleteDomain(t.Context(), 1), schema.CodeConflict)
		link := schema.Link{AccountID: 1, DomainID: 1, Hash: "next", CreatedAt: time.Now()}
		if err := links.CreateLink(t.Context(), &link); err != nil || link.Ordinal != 2 {
			t.Fatalf("got ordinal %d, error %v", link.Ordinal, err)
		}
	})
}
