//go:build engines

package postgres_test

import (
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// TestOwnersStay deletes rows as an operator could.
func TestOwnersStay(t *testing.T) {
	t.Parallel()
	dsn := engines.Postgres(t)
	links, raw := openLinks(t, dsn), openRaw(t, dsn)
	owner, idle := schema.Account{Email: "a@example.org", CreatedAt: time.Now()}, schema.Account{Email: "b@example.org",
		CreatedAt: time.Now()}
	for _, account := range []*schema.Account{&owner, &idle} {
		testkit.Must(t, links.CreateAccount(t.Context(), account))
	}
	testkit.Must(t, links.CreateLink(t.Context(), &schema.Link{AccountID: owner.ID, Hash: "hash", CreatedAt: time.Now()}))
	if _, err := raw.Exec(t.Context(), `DELETE FROM accounts WHERE id = $1`, owner.ID); err == nil {
		t.Error("an account with links was deleted")
	}
	exec(t, raw, `DELETE FROM accounts WHERE email = 'b@example.org'`)
	if _, err := schema.FindOwnedLink(t.Context(), links, owner.ID, "hash", nil); err != nil {
		t.Error(err)
	}
}
