package edgeservice_test

import (
	"net/http"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// Changes of these tests stay in the outbox: there is no api that publishes them.
func TestPending(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	restart := func() { e = e.restart(t) } // the edge outlives a subtest
	e.awaitFollowing(t)
	e.want(t, "/abc", http.StatusFound)
	t.Run("a change is dropped at once by DropPending", func(t *testing.T) {
		storetest.SetActive(t, e.links, 0, "abc", false)
		testkit.Must(t, e.DropPending(t.Context()))
		e.want(t, "/abc", http.StatusGone)
	})
	t.Run("a change reaches the edge while the broker is away", func(t *testing.T) {
		e.broker.Stop()
		defer e.broker.Start()
		storetest.SetActive(t, e.links, 0, "abc", true)
		testkit.Eventually(t, "the link is looked up again", func() bool {
			status, _, err := e.get("/abc")
			return err == nil && status == http.StatusFound
		})
	})
	t.Run("a change that was published reaches an edge that does not hear of it", func(t *testing.T) {
		e.broker.Stop()
		defer e.broker.Start()
		storetest.SetActive(t, e.links, 0, "abc", false)
		published := func([]schema.Change) error { return nil }
		for taken, err := true, error(nil); taken; {
			taken, err = e.links.TakeChanges(t.Context(), time.Minute, published)
			testkit.Must(t, err)
		}
		testkit.Eventually(t, "the link is looked up again", func() bool {
			status, _, err := e.get("/abc")
			return err == nil && status == http.StatusGone
		})
		storetest.SetActive(t, e.links, 0, "abc", true)
	})
	t.Run("a change that is not published is not missed by a snapshot", func(t *testing.T) {
		testkit.Must(t, e.stop())
		storetest.SetActive(t, e.links, 0, "abc", false)
		restart()
		e.awaitFollowing(t)
		e.want(t, "/abc", http.StatusGone)
	})
	t.Run("too many changes are all changes", func(t *testing.T) {
		e.links.overflow.Store(true)
		storetest.SetActive(t, e.links, 0, "abc", true)
		testkit.Eventually(t, "the link is looked up again", func() bool {
			status, _, err := e.get("/abc")
			return err == nil && status == http.StatusFound
		})
	})
	t.Run("nothing is dropped once the edge has stopped", func(t *testing.T) {
		testkit.Must(t, e.stop())
		storetest.SetActive(t, e.links, 0, "abc", false)
		testkit.Must(t, e.DropPending(t.Context()))
	})
}
