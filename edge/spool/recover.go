package spool

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"linkstream/schema"
)

// recover opens the lanes of earlier processes and removes folders without any.
func (s *Spool) recover() error {
	folders, err := os.ReadDir(s.cfg.Dir)
	if err != nil {
		return fmt.Errorf("recover spool: %w", err)
	}
	for _, f := range folders {
		if name := f.Name(); !isIncarnation(name) || name == s.incarnation.String() {
			continue
		}
		if err := s.recoverFolder(filepath.Join(s.cfg.Dir, f.Name())); err != nil {
			return fmt.Errorf("recover spool: %w", err)
		}
	}
	return nil
}

func isIncarnation(folder string) bool {
	_, err := schema.ParseIncarnation(folder)
	return err == nil
}

// recoverFolder opens the lanes of an earlier process and writes them to the disk: the process may have been killed
// before it could.
func (s *Spool) recoverFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	lanes := make(map[schema.Lane]*Lane)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if strings.HasSuffix(path, damagedSuffix) {
			s.used.Add(fileSize(e))
		}
		if filepath.Ext(path) != ".segment" {
			continue
		}
		seg, id, err := openSegment(path, s.cfg.OnSync)
		switch {
		case errors.Is(err, errUnused):
			err = os.Remove(path)
		case errors.Is(err, errDamagedHeader):
			s.damaged.Add(1)
			s.log.Error("spool segment is damaged, setting it aside", "path", path+damagedSuffix, "error", err)
			s.used.Add(fileSize(e))
			err = os.Rename(path, path+damagedSuffix)
		case err == nil:
			if lanes[id] == nil {
				lanes[id] = newLane(s, id)
				s.recovered = append(s.recovered, lanes[id])
			}
			lanes[id].segments = append(lanes[id].segments, seg)
			s.used.Add(int64(len(seg.data)))
			if err := seg.syncTo(len(seg.data)); err != nil {
				s.log.Error("cannot sync spool", "error", err)
			}
		}
		if err != nil {
			return err
		}
	}
	if err := s.syncDir(dir); err != nil {
		return err
	}
	for _, l := range lanes {
		l.recover()
		s.limited.recoverLane(l)
	}
	if len(lanes) == 0 {
		_ = os.Remove(dir) // fails if it holds a damaged segment, which must stay
	}
	return nil
}

// fileSize returns 0 for a file that was removed.
func fileSize(e os.DirEntry) int64 {
	if info, err := e.Info(); err == nil {
		return info.Size()
	}
	return 0
}

// recover derives the state of a lane from its segments.
func (l *Lane) recover() {
	slices.SortFunc(l.segments, func(a, b *segment) int { return cmp.Compare(a.firstSeq, b.firstSeq) })
	first, last := l.segments[0], l.segments[len(l.segments)-1]
	l.readSeq = first.firstSeq - 1
	l.acked.Store(max(l.readSeq, first.acknowledgedSeq()))
	seq := last.firstSeq - 1
	for r := range last.all() {
		seq = last.firstSeq + uint64(r.index)
	}
	l.seq.Store(max(seq, l.acked.Load()))
	for _, s := range l.segments {
		if p := s.partition(); p > 0 {
			l.partition.Store(p)
		}
	}
}

// retire removes a recovered lane that has been shipped to its end.
func (l *Lane) retire() error {
	l.acked.Store(l.seq.Load()) // damaged clicks are not pending any more
	if err := l.release(len(l.segments)); err != nil {
		return err
	}
	_ = os.Remove(filepath.Join(l.spool.cfg.Dir, l.id.Incarnation.String())) // fails except for the folder's last lane
	return nil
}
