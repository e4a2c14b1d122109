package main

import (
	"net/http"
	"path/filepath"
	"testing"

	"linkstream/api/invalidation"
	"linkstream/schema"
	"linkstream/schema/linkstore/sqlite"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func TestChanges(t *testing.T) {
	t.Parallel()
	a := startApp(t, filepath.Join(t.TempDir(), "data"))
	a.createLink(t, "known")
	a.visit(t, 1)
	store, err := sqlite.Open(t.Context(), a.cfg.dir().Links())
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Close(t, store) })
	t.Run("of the API are seen when they are answered", func(t *testing.T) {
		db := invalidation.Wrap(store, dropper{a.edge, a.log.Logger()}.changed)
		for range 20 {
			for _, active := range []bool{false, true} {
				storetest.SetActive(t, db, 0, "known", active)
				testkit.Equal(t, "found", a.status(t) == http.StatusFound, active)
			}
		}
	})
	t.Run("of commands are seen soon", func(t *testing.T) {
		_, err := command(t, "-data", a.cfg.Data, "link", "off", "known")
		testkit.Must(t, err)
		testkit.Eventually(t, "the link is gone", func() bool { return a.status(t) == http.StatusGone })
	})
	t.Run("do not stay in the outbox", func(t *testing.T) {
		testkit.Eventually(t, "the outbox is empty", func() bool {
			pending, err := store.PendingChanges(t.Context(), schema.OutboxPosition{})
			testkit.Must(t, err)
			return len(pending.Changes) == 0
		})
	})
	t.Run("are seen by the next process", func(t *testing.T) {
		a.stop()
		testkit.Must(t, store.SetTakenDown(t.Context(), 0, "known", false))
		startApp(t, a.cfg.Data).visit(t, 1)
	})
}
