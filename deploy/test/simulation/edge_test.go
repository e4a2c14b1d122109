//go:build !race

package simulation_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"linkstream/edge/spool"
	"linkstream/schema"
	"linkstream/schema/stream"
)

// edge is a process that appends clicks to a spool and ships them.
type edge struct {
	*simulation
	root      string // parent of the directories of all its spools
	spools    int    // directories used before the current one
	spool     *spool.Spool
	lanes     []*task
	producers []*producer
	appended  int64 // clicks; click n is on link n
	synced    int64 // clicks that are safe from a power failure
	disk      disk
	opening   bool
	dropped   map[int64]bool // clicks for which there was no room
	drops     uint64         // of the process
	// the process creates no segment ahead of time, so that its goroutines do not decide what has room
	tight    bool
	full     bool                 // the disk has no room for another segment
	noRoom   int                  // the second when that ended
	lostRoom bool                 // a segment of the process lacks a page
	ended    map[*spool.Lane]bool // lanes of earlier processes that are shipped, whatever is damaged
	skew     time.Duration        // of its wall clock
}

func (e *edge) dir() string { return filepath.Join(e.root, strconv.Itoa(e.spools)) }

// open starts the process on the spool in the current directory.
func (e *edge) open() {
	e.tight = e.full || e.random.IntN(2) == 0
	e.drops, e.lostRoom = 0, false
	cfg := spool.Config{Dir: e.dir(), MaxBytes: 64 << 20, SegmentBytes: pageBytes << e.random.IntN(3), Sync: time.Hour,
		OnSync: e.onSync, OnSegment: e.onSegment, Now: func() time.Time { return e.now().Add(e.skew) },
		Uptime: func() time.Duration { return time.Duration(e.seconds) * time.Second }}
	cfg.Lanes = 1 + e.random.IntN(3)
	var err error
	e.opening = true
	defer func() { e.opening = false }()
	if e.spool, err = spool.Open(cfg, e.log); err != nil {
		e.t.Fatalf("seed %d: %v", e.seed, err)
	}
	e.synced = e.appended // what was left is written to the disk
	e.lanes, e.producers, e.ended = nil, nil, make(map[*spool.Lane]bool)
	if e.machine != nil {
		e.machine.open()
	}
	for _, lane := range e.spool.Lanes() {
		e.addLane(lane)
	}
}

// addLane adds the task that ships a lane.
func (e *edge) addLane(lane *spool.Lane) {
	p := &producer{simulation: e.simulation}
	var topic spool.Topic = p
	if e.machine != nil {
		topic = &machineTopic{p, e.machine}
	}
	shipper := spool.NewShipper(e.spool, topic, e.log)
	var batch stream.Batch
	e.producers = append(e.producers, p)
	e.lanes = append(e.lanes, start(func(yield yield) {
		p.yield = yield
		n, err := shipper.Ship(context.Background(), lane, &batch)
		e.ended[lane] = n == 0 && err == nil && lane.Recovered()
		if n > 0 || err != nil {
			e.traceEvent("ship", int(lane.ID().Number), int64(n), err)
		}
		if err != nil && e.broken.skips {
			batch = stream.Batch{}
		}
	}))
}

// sync writes all clicks to the disk.
func (e *edge) sync() {
	if err := e.spool.Sync(); err != nil {
		e.addViolation("sync: %v", err)
	}
	e.synced = e.appended
}

// setClock sets the wall clock, rightly or not.
func (e *edge) setClock() {
	e.skew = []time.Duration{0, 0, -24 * time.Hour, 30 * time.Minute, 2 * time.Hour, 24 * time.Hour}[e.random.IntN(6)]
	e.occur(clockSet)
}

// click appends some clicks, short and long, each on its own link.
func (e *edge) click() {
	for range 1 + e.random.IntN(10) {
		e.appended++
		c := schema.Click{LinkID: e.appended, AccountID: 1, ClickedAt: time.UnixMilli(1_800_000_000_000)}
		if e.machine != nil && e.random.IntN(100) == 0 { // a click that cannot be counted is set aside
			c.ClickedAt = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
			e.occur(refusedClick)
			e.lost[e.appended] = true
		}
		c.Referrer = bytes.Repeat([]byte("r"), e.random.IntN(2*schema.MaxReferrerLen))
		if !e.spool.Append(e.random.Uint64(), &c) {
			e.drop()
		}
	}
}

// drop notes that there was no room for the last click. It must not be counted.
func (e *edge) drop() {
	if !e.full && e.seconds > e.noRoom && !e.lostRoom {
		e.addViolation("the spool has no room for a click")
	}
	e.occur(droppedClick)
	if e.drops++; e.spool.Dropped() != e.drops {
		e.addViolation("the spool has dropped %d clicks, not %d", e.drops, e.spool.Dropped())
	}
	if !e.broken.dropsSilently {
		e.dropped[e.appended] = true
	}
}

// pending returns the number of clicks that are to be shipped.
func (e *edge) pending() (n uint64) {
	for _, l := range e.spool.Lanes() {
		if !e.ended[l] {
			n += l.Pending()
		}
	}
	return n
}

// stop ends the shippers, and the writer of a machine without a broker. A batch in flight is not acknowledged any more.
func (e *edge) stop() {
	for _, l := range e.lanes {
		l.kill()
	}
	if e.machine != nil {
		e.machine.writer.kill()
	}
}

// kill ends the process as kill -9 does, and starts the next one on a copy of the directory taken at that instant.
func (e *edge) kill() {
	e.occur(edgeKilled)
	for _, p := range e.producers {
		if p.inFlight {
			e.occur(edgeKilledInFlight)
		}
	}
	previous := e.dir()
	e.spools++
	e.disk.rename(previous, e.dir())
	if err := copyDir(e.dir(), previous); err != nil {
		e.t.Fatalf("seed %d: %v", e.seed, err)
	}
	e.stop()
	e.close(previous)
	e.open()
}

// restart stops the process and starts the next one on the same directory.
func (e *edge) restart() {
	e.occur(edgeRestarted)
	e.stop()
	e.close("")
	e.open()
}

// wipe restarts the process on an empty disk if no click is pending.
func (e *edge) wipe() {
	if e.spool.Pending() > 0 {
		return
	}
	e.occur(diskWiped)
	e.stop()
	e.close(e.dir())
	e.spools++
	e.disk.files, e.disk.folders = make(map[string]*diskFile), make(map[string]bool)
	if e.broken.reusesIdentity {
		e.seedIdentities()
	}
	e.open()
}

// close closes the spool and removes dir if it is not "".
func (e *edge) close(dir string) {
	if err := e.spool.Close(); err != nil {
		e.addViolation("close: %v", err)
	}
	if dir == "" {
		return
	}
	if err := os.RemoveAll(dir); err != nil {
		e.addViolation("remove: %v", err)
	}
}

// copyDir copies a directory. It leaves out files that are removed meanwhile, such as an unused spare segment.
func copyDir(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		target := filepath.Join(to, path[len(from):])
		if d.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o600)
	})
}
