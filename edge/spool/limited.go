package spool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"linkstream/schema"
)

// limitedName is a file in a spool's directory that says which incarnations have leases of links' limits, and how many
// clicks that count towards limits were in segments that are removed. With the segments that are left it says how many
// clicks an incarnation has spent, to the click: see package edge/limit. It has a limitedLine of JSON per line.
const limitedName = "limited"

// limitedLine notes that an incarnation has leases, and the limited clicks of a removed segment: the one of Lane that
// ended with the click Last.
type limitedLine struct {
	Incarnation string          `json:"incarnation"`
	Lane        uint32          `json:"lane,omitempty"`
	Last        uint64          `json:"last,omitempty"`
	Clicks      map[int64]int64 `json:"clicks,omitempty"` // by link
}

// limited is the file, and what it says about earlier incarnations.
type limited struct {
	path  string
	mu    sync.Mutex
	noted map[string]bool                        // incarnations whose leases have not ended in the link store
	left  map[schema.Incarnation]map[int64]int64 // clicks that earlier incarnations have spent, by link
	last  map[schema.Lane]uint64                 // clicks up to these are in the file
}

// open reads the file, and sets it aside if it is damaged: its clicks would be incomplete.
func (f *limited) open(path string) error {
	f.path = path
	f.reset()
	err := f.read()
	if err != nil {
		f.reset()
		err = errors.Join(fmt.Errorf("read %q: %w", path, err), os.Rename(path, path+damagedSuffix))
	}
	return err
}

func (f *limited) reset() {
	f.noted, f.last = map[string]bool{}, map[schema.Lane]uint64{}
	f.left = map[schema.Incarnation]map[int64]int64{}
}

// read drops an incomplete line: its clicks are still in a segment.
func (f *limited) read() error {
	text, err := os.ReadFile(f.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	if len(whole) < len(text) {
		if err := os.Truncate(f.path, int64(len(whole))); err != nil {
			return err
		}
	}
	for text := range bytes.Lines(whole) {
		var line limitedLine
		var incarnation schema.Incarnation
		err := json.Unmarshal(text, &line)
		if err == nil {
			incarnation, err = schema.ParseIncarnation(line.Incarnation)
		}
		if err != nil {
			return fmt.Errorf("line %q: %w", text, err)
		}
		f.noted[line.Incarnation] = true
		if f.left[incarnation] == nil {
			f.left[incarnation] = map[int64]int64{}
		}
		lane := schema.Lane{Incarnation: incarnation, Number: line.Lane}
		// else an earlier process has written the line, and was killed before it removed the segment
		if line.Last > f.last[lane] {
			f.last[lane] = line.Last
			addClicks(f.left[incarnation], line.Clicks)
		}
	}
	return nil
}

func addClicks(to, clicks map[int64]int64) {
	for link, n := range clicks {
		to[link] += n
	}
}

// recoverLane counts what is in the segments of a lane of an earlier incarnation.
func (f *limited) recoverLane(l *Lane) {
	f.mu.Lock()
	defer f.mu.Unlock()
	left := f.left[l.id.Incarnation]
	if left == nil {
		return
	}
	for _, s := range l.segments {
		if s.count(l.id); s.last() > f.last[l.id] {
			addClicks(left, s.limited)
		}
	}
}

// countLimited counts a click that was appended.
func (s *segment) countLimited(link int64) {
	if s.limited == nil {
		s.limited = map[int64]int64{}
	}
	s.limited[link]++
}

// count counts the clicks in a segment of an earlier process that count towards limits.
func (s *segment) count(lane schema.Lane) {
	s.limited = map[int64]int64{}
	var click schema.Click
	var buffer []byte
	for from := start; ; {
		body, at := s.next(from)
		if body == nil {
			return
		}
		seq := s.firstSeq + uint64(at.index)
		buffer = schema.AppendClickIdentity(buffer[:0], lane, seq)
		if guarded(func() { buffer = append(buffer, body...) }) == nil && schema.DecodeClick(buffer, &click) == nil &&
			click.Limited {
			s.limited[click.LinkID]++
		}
		from = place{at.pos + recordLen(len(body)), at.index + 1}
		s.records = from.index
	}
}

// last returns the seq of the last record.
func (s *segment) last() uint64 { return s.firstSeq + uint64(s.records) - 1 }

// noteSegment writes what a segment had that is about to be removed.
func (f *limited) noteSegment(lane schema.Lane, s *segment) error {
	if len(s.limited) == 0 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.noted[lane.Incarnation.String()] || s.last() <= f.last[lane] {
		return nil
	}
	if err := f.append(limitedLine{lane.Incarnation.String(), lane.Number, s.last(), s.limited}); err != nil {
		return err
	}
	f.last[lane] = s.last()
	return nil
}

// append writes a line to the disk. After an error there may be a part of it: the next line begins with a new one.
func (f *limited) append(line limitedLine) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	before, err := file.Stat()
	if err == nil {
		_, err = file.Write(append(text, '\n'))
	}
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %q: %w", f.path, err), os.Truncate(f.path, before.Size()))
	}
	return nil
}

// Incarnation returns the incarnation of the process.
func (s *Spool) Incarnation() schema.Incarnation { return s.incarnation }

// NoteLeases notes on the disk that the process may have leases from now on. Clicks that count towards limits are
// recorded only after it has returned nil.
func (s *Spool) NoteLeases() error {
	f := &s.limited
	f.mu.Lock()
	defer f.mu.Unlock()
	name := s.incarnation.String()
	if f.noted[name] {
		return nil
	}
	if err := f.append(limitedLine{Incarnation: name}); err != nil {
		return err
	}
	if err := s.syncDir(s.cfg.Dir); err != nil {
		return err
	}
	f.noted[name] = true
	return nil
}

// LeftLeases returns the earlier incarnations whose leases have not ended in the link store, each with the number of
// limited clicks that it recorded, by link. These numbers are final.
func (s *Spool) LeftLeases() map[schema.Incarnation]map[int64]int64 {
	s.limited.mu.Lock()
	defer s.limited.mu.Unlock()
	left := make(map[schema.Incarnation]map[int64]int64, len(s.limited.left))
	for incarnation, clicks := range s.limited.left {
		left[incarnation] = clicks
	}
	return left
}

// LeasesEnded notes that an incarnation's leases have ended in the link store.
func (s *Spool) LeasesEnded(incarnation schema.Incarnation) error {
	f := &s.limited
	f.mu.Lock()
	defer f.mu.Unlock()
	text, err := os.ReadFile(f.path)
	if err != nil {
		return fmt.Errorf("read %q: %w", f.path, err)
	}
	var kept []byte
	mark := []byte(incarnation.String())
	for line := range bytes.Lines(text) {
		if !bytes.Contains(line, mark) {
			kept = append(kept, line...)
		}
	}
	next := f.path + ".new"
	if err := writeSynced(next, kept); err != nil {
		return errors.Join(err, os.Remove(next))
	}
	if err := os.Rename(next, f.path); err != nil {
		return err
	}
	delete(f.noted, incarnation.String())
	delete(f.left, incarnation)
	return s.syncDir(filepath.Dir(f.path))
}

func writeSynced(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Sync(), file.Close())
}
