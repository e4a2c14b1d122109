//go:build engines

package postgres_test

import (
	"slices"
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

// TestEditsOfOlderPrograms executes statements of 1.0.0, which knows neither versions nor numbers of changes.
func TestEditsOfOlderPrograms(t *testing.T) {
	t.Parallel()
	dsn := engines.Postgres(t)
	links, raw := openLinks(t, dsn), openRaw(t, dsn)
	owner := schema.Account{Email: "a@example.org", CreatedAt: time.Now()}
	testkit.Must(t, links.CreateAccount(t.Context(), &owner))
	var edited schema.Link
	for _, hash := range []string{"edited", "deleted", "taken", "folded", "kept"} {
		link := schema.Link{AccountID: owner.ID, Hash: hash, URL: "https://example.com/", CreatedAt: time.Now()}
		testkit.Must(t, links.CreateLink(t.Context(), &link))
		if hash == "edited" {
			edited = link
		}
	}
	var at schema.LinkChangePosition
	poll := func() (hashes []string) {
		t.Helper()
		_, err := links.NumberChanges(t.Context(), owner.ID, 100)
		testkit.Must(t, err)
		var changed []schema.Link
		changed, at, err = links.ChangedLinks(t.Context(), owner.ID, schema.LinkFilter{}, at, 100)
		testkit.Must(t, err)
		for _, link := range changed {
			hashes = append(hashes, link.Hash)
		}
		slices.Sort(hashes)
		return hashes
	}
	poll()
	exec(t, raw, `UPDATE links SET title = 'new', updated_at = now() WHERE hash = 'edited'`)
	exec(t, raw, `UPDATE links SET ordinal = -ordinal, updated_at = now() WHERE hash = 'deleted'`)
	exec(t, raw, `UPDATE links SET taken_down = true WHERE hash = 'taken'`)
	exec(t, raw, `UPDATE links SET folded_title = 'x' WHERE hash = 'folded'`)
	exec(t, raw, `UPDATE links SET title = title WHERE hash = 'kept'`)
	testkit.Equal(t, "changed links", poll(), []string{"deleted", "edited", "taken"})
	testkit.Equal(t, "changed links later", len(poll()), 0)
	title := "mine"
	err := links.UpdateLink(t.Context(), &edited, schema.LinkEdit{Title: &title, Unchanged: true}, time.Now())
	testkit.WantCode(t, err, schema.CodeConflict)
}
