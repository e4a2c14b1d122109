package resolve

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/edge/snapshot"
)

// EncodeLocation returns what appendLocation appends.
func EncodeLocation(longURL string) []byte { return appendLocation(nil, longURL) }

// State is state for tests.
type State = state

// The methods of State.
var (
	SetFresh  = (*state).setFresh
	Fresh     = (*state).fresh
	Drop      = (*state).drop
	Dropped   = (*state).dropped
	SetStale  = (*state).setStale
	Retire    = (*state).retire
	IsRetired = (*state).isRetired
)

// HotTable is a hot table of one entry, for tests.
type HotTable struct {
	table *hotTable[linkIDs]
	entry *entry[linkIDs]
}

// NewHotTable returns an empty table and an entry that is fresh until a time.
func NewHotTable(until time.Time) *HotTable {
	h := &HotTable{newHotTable[linkIDs](1 << 20), newEntry(linkIDs{1, 2}, nil)}
	h.entry.check = 7
	h.entry.state.setFresh(until)
	return h
}

// Drops returns what Put expects.
func (h *HotTable) Drops() uint64 { return h.table.drops.Load() }

// CountDrop counts a Drop of an entry that is neither in the table nor in the shards.
func (h *HotTable) CountDrop() { h.table.drops.Add(1) }

// Put puts the entry, found after the table had counted drops, into the table.
func (h *HotTable) Put(now time.Time, drops uint64) {
	h.table.put(1<<40, h.entry, now, h.entry.state.until(), drops)
}

// Get reports whether the table has the entry.
func (h *HotTable) Get(now time.Time) bool { return h.table.get(1<<40, 7, now) != nil }

// Remove removes the entry and reports whether the table had it.
func (h *HotTable) Remove() bool { return h.table.remove(1<<40, 7) != nil }

// Times is a table of times, for tests.
type Times = times

// NewTimes returns a table of times.
var NewTimes = newTimes

// The methods of Times.
var (
	GetTime   = (*times).get
	PutTime   = (*times).put
	ClearTime = (*times).clear
)

// MaxRecalls is maxRecalls.
const MaxRecalls = maxRecalls

// Recalls returns the number of accounts whose changes are remembered.
func Recalls(r *Resolver) int { return len(r.review.accounts.Load().rounds) }

// SnapshotRecord is a record of a snapshot.
type SnapshotRecord = snapshot.Record

// Records of a link and of a host.
var (
	SavedLink = SnapshotRecord{Kind: kindLink,
		Body: encodeLink(nil, "\x00\x00\x00\x00\x00\x00\x00\x00abc", newEntry(linkIDs{1, 2}, []byte("https://example.com/")))}
	SavedHost = SnapshotRecord{Kind: kindHost, Body: encodeHost(nil, "go.example.com", newEntry(domainID(3), nil))}
)

// Restore does what a record of a snapshot says.
func Restore(r *Resolver, record SnapshotRecord) error {
	r.hosts.backlog.Store(newBacklog(r.hosts.shards))
	r.links.backlog.Store(newBacklog(r.links.shards))
	defer r.Settle(context.Background())
	return r.restore(record)
}

// Unsettled returns the number of links that were restored and have not settled.
func Unsettled(r *Resolver) int {
	if b := r.links.backlog.Load(); b != nil {
		return b.count
	}
	return 0
}

// WriteSnapshot writes a snapshot of n links.
func WriteSnapshot(path string, n int) error {
	log, err := snapshot.Open(path, func(snapshot.Record) error { return nil }, metrics.NewSet(), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	e := newEntry(linkIDs{1, 2}, []byte("https://example.com/a/page/with/a/path/of/usual/length?and=a&query=string"))
	for i := range n {
		log.Append(kindLink, encodeLink(nil, fmt.Sprintf("\x00\x00\x00\x00\x00\x00\x00\x00%07d", i), e))
		if i%100_000 == 0 { // so that little waits to be written
			log.Close()
			if log, err = snapshot.Open(path, func(snapshot.Record) error { return nil }, metrics.NewSet(), slog.New(slog.DiscardHandler)); err != nil {
				return err
			}
		}
	}
	log.Close()
	return nil
}
