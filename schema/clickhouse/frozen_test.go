//go:build engines

package clickhouse_test

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// TestFrozenInsertIsNotCountedTwice suspends a worker between its check of the position and its insert, until the
// server has deleted the tokens of that time.
func TestFrozenInsertIsNotCountedTwice(t *testing.T) {
	const window, each, batches = 20, 10, 30
	dsn := engines.ClickHouse(t)
	store, raw := openClicks(t, dsn), openRaw(t, dsn)
	exec(t, raw, fmt.Sprintf("ALTER TABLE clicks MODIFY SETTING non_replicated_deduplication_window = %d", window))
	var armed atomic.Bool
	held, release := make(chan struct{}), make(chan struct{})
	_, behind := startProxy(t, dsn, func(sent []byte, _ func()) bool {
		if bytes.Contains(sent, []byte("INSERT INTO clicks")) && armed.CompareAndSwap(true, false) {
			close(held)
			<-release
		}
		return true
	})
	frozen := openClicks(t, behind)
	frozen.ExpireAfter(time.Second)

	late := new(schema.ClickBatch)
	storetest.NewTraffic().Fill(late, 0, each)
	armed.Store(true)
	outcome := make(chan error, 1)
	go func() { outcome <- frozen.InsertClicks(t.Context(), late) }()
	select {
	case <-held:
	case <-time.After(testkit.Patience):
		t.Fatal("the insert is not held")
	}
	const clock = "SELECT toUInt64(toUnixTimestamp(now()))"
	checked := number(t, raw, clock)
	batch, source := new(schema.ClickBatch), storetest.NewTraffic()
	for range batches {
		source.Fill(batch, 0, each)
		insert(t, store, batch)
	}
	testkit.Eventually(t, "the insert expires", func() bool { return number(t, raw, clock) > checked+1 })
	close(release)
	testkit.WantCode(t, <-outcome, schema.CodeConflict)
	wantRows(t, raw, 0, each*batches)
}
