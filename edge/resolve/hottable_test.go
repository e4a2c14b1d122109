package resolve_test

import (
	"testing"
	"time"

	"linkstream/edge/resolve"
	"linkstream/schema/testkit"
)

func TestHotTable(t *testing.T) {
	now := time.Now()
	t.Run("an entry is found for 4 s, then ristretto sees a request", func(t *testing.T) {
		table := resolve.NewHotTable(now.Add(time.Minute))
		table.Put(now, table.Drops())
		testkit.Equal(t, "found at once", table.Get(now), true)
		testkit.Equal(t, "found after 3 s", table.Get(now.Add(3*time.Second)), true)
		testkit.Equal(t, "found after 4 s", table.Get(now.Add(4*time.Second)), false)
	})
	t.Run("an entry is not found when it is stale", func(t *testing.T) {
		table := resolve.NewHotTable(now.Add(2 * time.Second))
		table.Put(now, table.Drops())
		testkit.Equal(t, "found while fresh", table.Get(now.Add(time.Second)), true)
		testkit.Equal(t, "found when stale", table.Get(now.Add(2*time.Second)), false)
	})
	t.Run("an entry is not kept if there was a Drop since it was found", func(t *testing.T) {
		table := resolve.NewHotTable(now.Add(time.Minute))
		drops := table.Drops()
		table.CountDrop()
		table.Put(now, drops)
		testkit.Equal(t, "found", table.Get(now), false)
	})
	t.Run("a removed entry is not found", func(t *testing.T) {
		table := resolve.NewHotTable(now.Add(time.Minute))
		table.Put(now, table.Drops())
		testkit.Equal(t, "removed", table.Remove(), true)
		testkit.Equal(t, "found", table.Get(now), false)
		testkit.Equal(t, "removed again", table.Remove(), false)
	})
}
