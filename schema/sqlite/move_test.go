package sqlite_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/linkstore"
	"linkstream/schema/sqlitefile"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func wantMovedError(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, schema.ErrMoved) || schema.ErrorCode(err) != schema.CodeUnavailable {
		t.Errorf("error %v, want ErrMoved", err)
	}
}

func TestFreeze(t *testing.T) {
	t.Parallel()
	t.Run("a link store reads, and refuses changes, also by stores that have it open", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "links.db")
		open, now := openLinks(t, path), time.Now()
		account := schema.Account{Email: "a@example.org", CreatedAt: now}
		token := schema.Token{Digest: [32]byte{1}, CreatedAt: now}
		testkit.Must(t, open.CreateFirstAccount(t.Context(), &account, &token))
		link := schema.Link{AccountID: account.ID, Hash: "known", URL: "https://example.com/", Active: true, CreatedAt: now}
		testkit.Must(t, open.CreateLink(t.Context(), &link))
		session := schema.Session{AccountID: account.ID, Digest: [32]byte{2}, CreatedAt: now, SeenAt: now,
			ExpiresAt: now.Add(time.Hour)}
		testkit.Must(t, open.CreateSession(t.Context(), &session, account.PasswordHash))
		first, err := sqlitefile.Freeze(t.Context(), path, schema.MoveID{})
		testkit.Must(t, err)
		again, err := sqlitefile.Freeze(t.Context(), path, schema.MoveID{9})
		testkit.Must(t, err)
		testkit.Equal(t, "the move", again, first)
		if first == (schema.MoveID{}) {
			t.Errorf("the move is %v", first)
		}
		for _, store := range []*linkstore.Store{open, openLinks(t, path)} {
			wantMovedError(t, store.CreateAccount(t.Context(), &schema.Account{Email: "b@example.org", CreatedAt: now}))
			other := link
			other.Hash = "other"
			wantMovedError(t, store.CreateLink(t.Context(), &other))
			wantMovedError(t, store.RevokeToken(t.Context(), token.ID, now, false))
			wantMovedError(t, store.EndSession(t.Context(), account.ID, session.ID))

			got, err := schema.FindLink(t.Context(), store, 0, "known")
			testkit.Must(t, err)
			testkit.Equal(t, "URL", got.URL, link.URL)
			testkit.Must(t, store.UseTokens(t.Context(), map[int64]time.Time{token.ID: now}))
			testkit.Must(t, store.ExtendSession(t.Context(), session.ID, now, now.Add(time.Hour)))
			granted, _, err := store.LeaseRequests(t.Context(), token.ID, now.Truncate(time.Minute), 10)
			testkit.Must(t, err)
			if granted == 0 {
				t.Error("no request is granted")
			}
		}
	})
	t.Run("a click store counts nothing more", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "clicks.db")
		store := openClicks(t, path)
		batch := &schema.ClickBatch{Next: 1, Offset: []int64{0}, Lane: make([]schema.Lane, 1), Seq: []uint64{1},
			LinkID:    []int64{1},
			AccountID: []int64{1}, ClickedAt: []time.Time{time.Now().UTC()}, Device: []schema.Device{schema.Mobile},
			Browser: []string{"Firefox"}}
		_, err := sqlitefile.Freeze(t.Context(), path, schema.MoveID{})
		testkit.Must(t, err)
		wantMovedError(t, store.InsertClicks(t.Context(), storetest.NoNames(batch)))
		marks, err := store.LaneMarks(t.Context(), batch.Lane)
		testkit.Must(t, err)
		testkit.Equal(t, "mark", marks[0], 0)
	})
	t.Run("guards every table except for limits, the outbox and shared values", func(t *testing.T) {
		t.Parallel()
		for name, unguarded := range map[string]int{"links.db": 4, "clicks.db": 0} {
			path := filepath.Join(t.TempDir(), name)
			if name == "links.db" {
				openLinks(t, path)
			} else {
				openClicks(t, path)
			}
			_, err := sqlitefile.Freeze(t.Context(), path, schema.MoveID{})
			testkit.Must(t, err)
			db, err := sql.Open("sqlite", path)
			testkit.Must(t, err)
			defer testkit.Close(t, db)
			var tables, triggers int
			testkit.Must(t, db.QueryRow(`SELECT count(*) FILTER (WHERE type = 'table' AND name NOT LIKE 'sqlite_%'),
				count(*) FILTER (WHERE type = 'trigger' AND name LIKE 'moved_%') FROM sqlite_schema
				WHERE tbl_name NOT IN ('moved', 'goose_db_version')`).Scan(&tables, &triggers))
			testkit.Equal(t, "triggers of "+name, triggers, 3*(tables-unguarded))
		}
	})
}
