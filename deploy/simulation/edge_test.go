package simulation_test

import (
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
	folder   string // of all its spools, one after the other
	spools   int
	spool    *spool.Spool
	lanes    []*task
	uplinks  []*uplink
	appended int64 // clicks, on links 1, 2, 3, …
}

func (e *edge) dir() string { return filepath.Join(e.folder, strconv.Itoa(e.spools)) }

// open starts the process on the spool in its present directory.
func (e *edge) open() {
	cfg := spool.Config{Dir: e.dir(), MaxBytes: 64 << 20, SegmentBytes: 4 << 10, Sync: time.Hour}
	cfg.Lanes = 1 + e.random.IntN(3)
	var err error
	if e.spool, err = spool.Open(cfg, e.log); err != nil {
		e.t.Fatalf("seed %d: %v", e.seed, err)
	}
	e.lanes, e.uplinks = nil, nil
	for _, lane := range e.spool.Lanes() {
		e.addLane(lane)
	}
}

// addLane starts what ships a lane.
func (e *edge) addLane(lane *spool.Lane) {
	u := &uplink{simulation: e.simulation}
	shipper := spool.NewShipper(e.spool, u, e.log)
	var batch stream.Batch
	e.uplinks = append(e.uplinks, u)
	e.lanes = append(e.lanes, start(func(pause pause) {
		u.pause = pause
		n, err := shipper.Ship(context.Background(), lane, &batch)
		if n > 0 || err != nil {
			e.note("ship", int(lane.ID().Number), int64(n), err)
		}
		if err != nil && e.broken.moves {
			batch = stream.Batch{} // and goes on with the clicks that follow
		}
	}))
}

// click appends some clicks, short and long ones, each on a link of its own.
func (e *edge) click() {
	for range 1 + e.random.IntN(10) {
		e.appended++
		c := schema.Click{LinkID: e.appended, AccountID: 1, ClickedAt: time.UnixMilli(1_800_000_000_000)}
		c.Referrer = make([]byte, e.random.IntN(2*schema.MaxReferrerLen))
		if !e.spool.Append(e.random.Uint64(), &c) {
			e.violate("no room for a click")
		}
	}
}

// stop ends the process without a word to the spool's lanes: no batch in flight is acknowledged any more.
func (e *edge) stop() {
	for _, l := range e.lanes {
		l.kill()
	}
}

// kill ends the process as kill -9 does and starts the next one on what it leaves: the directory at this instant.
func (e *edge) kill() {
	e.happened[edgeKilled]++
	for _, u := range e.uplinks {
		if u.inFlight {
			e.happened[edgeKilledInFlight]++
		}
	}
	left := e.dir()
	e.spools++
	if err := copyDir(e.dir(), left); err != nil {
		e.t.Fatalf("seed %d: %v", e.seed, err)
	}
	e.stop()
	e.close(left)
	e.open()
}

// restart ends the process properly, after which the next one takes over the directory.
func (e *edge) restart() {
	e.happened[edgeRestarted]++
	e.stop()
	e.close("")
	e.open()
}

// wipe restarts the process on an empty disk, if nothing is lost by it.
func (e *edge) wipe() {
	if e.spool.Pending() > 0 {
		return
	}
	e.happened[diskWiped]++
	e.stop()
	e.close(e.dir())
	e.spools++
	if e.broken.identity {
		e.drawIdentities() // the same ones again
	}
	e.open()
}

// close closes the spool and removes a directory that it used.
func (e *edge) close(dir string) {
	if err := e.spool.Close(); err != nil {
		e.violate("close: %v", err)
	}
	if dir == "" {
		return
	}
	if err := os.RemoveAll(dir); err != nil {
		e.violate("remove: %v", err)
	}
}

// copyDir copies files. One that is removed meanwhile, a spare segment that was not needed, is left out.
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
