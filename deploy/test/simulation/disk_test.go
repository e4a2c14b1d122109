//go:build !race

package simulation_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	pageBytes   = 4 << 10
	headerBytes = 64
)

// disk is what a power failure leaves of the current spool: what was synced. The kernel may have written more.
type disk struct {
	mu      sync.Mutex // syncs come from several goroutines
	files   map[string]*diskFile
	folders map[string]bool // whose names are on the disk
}

func newDisk() disk {
	return disk{files: make(map[string]*diskFile), folders: make(map[string]bool)}
}

// diskFile is a file with clicks.
type diskFile struct {
	content []byte // zeros where nothing was synced
	named   bool   // its folder has been synced since it has clicks
}

// onSync notes what is on the disk: the first size bytes of a file, or the names in a folder.
func (e *edge) onSync(path string, size int) {
	d := &e.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case path != e.root && path != e.dir() && !strings.HasPrefix(path, e.dir()+string(filepath.Separator)):
		// of a process that was killed
	case e.opening && e.broken.leavesUnsynced,
		size == 0 && e.broken.unsyncedNames,
		path == e.root && e.broken.unsyncedSpool,
		path == e.dir() && e.broken.unsyncedFolders,
		size > 0 && e.broken.unsyncedFiles,
		size == headerBytes && e.broken.unsyncedBindings:
	case size == 0:
		d.syncNames(path)
	default:
		if data, err := os.ReadFile(path); err == nil {
			copy(d.file(path, len(data)).content, data[:size])
		}
	}
}

func (d *disk) file(path string, size int) *diskFile {
	f := d.files[path]
	if f == nil {
		f = &diskFile{content: make([]byte, size)}
		d.files[path] = f
	}
	return f
}

// syncNames notes the files with clicks that a folder has, and those that it has no more. Spares come and go at any
// time, and hold nothing.
func (d *disk) syncNames(folder string) {
	folders, _ := filepath.Glob(filepath.Join(folder, "*"))
	for _, path := range folders {
		d.folders[path] = true
	}
	for path := range d.files {
		if filepath.Dir(path) == folder {
			if _, err := os.Stat(path); err != nil {
				delete(d.files, path)
			}
		}
	}
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		if data, err := os.ReadFile(path); err == nil && used(data) {
			d.file(path, len(data)).named = true
		}
	}
}

// used reports whether a segment is not a spare.
func used(data []byte) bool {
	return len(data) > headerBytes && !bytes.Equal(data[:headerBytes], make([]byte, headerBytes))
}

// rename follows the folders when a process is killed and the next one starts on a copy.
func (d *disk) rename(from, to string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	renamed := make(map[string]*diskFile)
	for path, f := range d.files {
		renamed[to+strings.TrimPrefix(path, from)] = f
	}
	d.files = renamed
	folders := make(map[string]bool)
	for path := range d.folders {
		folders[to+strings.TrimPrefix(path, from)] = true
	}
	d.folders = folders
}

// losePower ends the process and the machine, and starts both again. A page of a file has what was synced, or what the
// process wrote last. Files whose names were not synced are there or not.
func (e *edge) losePower() {
	e.occur(powerLost)
	previous := e.dir()
	e.spools++
	left := e.leftByPowerLoss(previous)
	e.stop()
	e.close(previous)
	e.disk.files, e.disk.folders = make(map[string]*diskFile), make(map[string]bool)
	for path, data := range left {
		path = e.dir() + strings.TrimPrefix(path, previous)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			e.t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			e.t.Fatal(err)
		}
		e.disk.files[path] = &diskFile{content: bytes.Clone(data), named: true}
		e.disk.folders[filepath.Dir(path)], e.disk.folders[e.dir()] = true, true
	}
	if e.machine != nil {
		e.machine.losePower()
	}
	safe := e.safe()
	for link := e.synced + 1; link <= e.appended; link++ {
		if !safe[link] {
			e.lost[link] = true
		}
	}
	e.open()
}

// growAndLosePower changes what a lane is bound to when it is bound again. It does so when a lane has been bound.
func (s *simulation) growAndLosePower() {
	for _, p := range s.edge.producers {
		if p.attempts > 0 && len(s.broker.partitions) < maxPartitions {
			s.growTopic()
			s.edge.losePower()
			return
		}
	}
}

// leftByPowerLoss returns the contents of the files that are left in a directory.
func (e *edge) leftByPowerLoss(dir string) map[string][]byte {
	e.disk.mu.Lock()
	defer e.disk.mu.Unlock()
	now := make(map[string][]byte)
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*.segment"))
	if err != nil {
		e.t.Fatal(err)
	}
	for _, path := range paths {
		if data, err := os.ReadFile(path); err == nil && used(data) {
			now[path] = data
		}
	}
	all := maps.Clone(now)
	for path, f := range e.disk.files {
		if f.named && all[path] == nil && used(f.content) { // removed, and the folder was not synced since
			all[path] = f.content
		}
	}
	left, gone := make(map[string][]byte), make(map[string]bool)
	for _, path := range slices.SortedFunc(maps.Keys(all), func(a, b string) int { return bySeq(all[a], all[b]) }) {
		for _, folder := range []string{dir, filepath.Dir(path)} {
			if _, known := gone[folder]; !known {
				gone[folder] = !e.disk.folders[folder] && e.random.IntN(2) == 0
			}
		}
		if gone[dir] || gone[filepath.Dir(path)] {
			continue
		}
		f := e.disk.files[path]
		if f == nil {
			f = &diskFile{content: make([]byte, len(all[path]))}
		}
		if (!f.named || now[path] == nil) && e.random.IntN(2) == 0 {
			continue
		}
		data := bytes.Clone(f.content)
		for at := 0; at < len(data) && now[path] != nil; at += pageBytes {
			if end := min(at+pageBytes, len(now[path])); end > at && e.random.IntN(2) == 0 {
				copy(data[at:], now[path][at:end])
			}
		}
		left[path] = data
	}
	return left
}

// bySeq orders segments by what does not depend on when their files were created.
func bySeq(a, b []byte) int {
	return cmp.Or(bytes.Compare(a[8:28], b[8:28]), // incarnation and lane
		cmp.Compare(binary.LittleEndian.Uint64(a[32:]), binary.LittleEndian.Uint64(b[32:])))
}

// onSegment is asked for room for another segment.
func (e *edge) onSegment(ahead bool) error {
	if ahead && e.tight || !ahead && e.full {
		return unix.ENOSPC
	}
	return nil
}

// fillDisk leaves no room for another segment.
func (e *edge) fillDisk() {
	if e.tight && !e.full {
		e.occur(diskFull)
		e.full = true
	}
}

func (e *edge) freeDisk() {
	if e.full {
		e.full, e.noRoom = false, e.seconds
	}
}

// loseRoom takes the blocks away that the process's segments have not used yet, as a file system does that is full and
// writes to new blocks.
func (e *edge) loseRoom() {
	lanes := e.spool.Lanes()
	incarnation := lanes[len(lanes)-1].ID().Incarnation.String()
	paths, err := filepath.Glob(filepath.Join(e.dir(), incarnation, "*.segment"))
	if err != nil {
		e.t.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil || !used(data) {
			continue
		}
		end := len(bytes.TrimRight(data, "\x00"))
		if whole := (end + pageBytes) / pageBytes * pageBytes; whole < len(data) {
			e.occur(pageLost)
			e.lostRoom = true
			if err := os.Truncate(path, int64(whole)); err != nil {
				e.t.Fatal(err)
			}
		}
	}
}
