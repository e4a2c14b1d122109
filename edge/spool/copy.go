package spool

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"linkstream/schema"
)

// Copy copies the spool in one directory into another directory, which it creates. A process may use the spool at the
// same time: each click that was appended before the call and is not acknowledged yet when the call returns is in the
// copy. Of a lane the copy has no gap that the lane does not have, except for clicks that are acknowledged. The files
// are as short as possible. The caller syncs them.
func Copy(from, to string) error { return copier{func(string) {}}.copy(from, to) }

// copier calls look before it looks at a segment for the first time, and for the second time.
type copier struct{ look func(path string) }

func (c copier) copy(from, to string) error {
	folders, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) { // no edge has used it
		return nil
	}
	if err == nil {
		err = os.MkdirAll(to, 0o700)
	}
	if err != nil {
		return fmt.Errorf("copy spool: %w", err)
	}
	for _, f := range folders {
		if !isIncarnation(f.Name()) {
			continue
		}
		if err := c.copyFolder(filepath.Join(from, f.Name()), filepath.Join(to, f.Name())); err != nil {
			return fmt.Errorf("copy spool: %w", err)
		}
	}
	// after the segments: a lane may end during the copy
	for _, name := range []string{laneEndsName, dropCountName, limitedName} {
		if err := copyFile(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return fmt.Errorf("copy spool: %w", err)
		}
	}
	return nil
}

// copyFolder copies the segments of one incarnation, and then the files of refused clicks: clicks move from segments to
// these files. Any file may be removed during the copy.
func (c copier) copyFolder(from, to string) error {
	segments, err := c.usedSegments(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	// The shipper removes the oldest segments of a lane first. If a segment is gone, so are all that come after it here.
	slices.SortFunc(segments, func(a, b segmentFile) int { return cmp.Compare(b.firstSeq, a.firstSeq) })
	for _, s := range segments {
		if err := copySegment(filepath.Join(from, s.name), filepath.Join(to, s.name)); err != nil {
			return err
		}
	}
	entries, err := readDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext != damagedSuffix && ext != refusedSuffix {
			continue
		}
		if err := copyFile(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	_ = os.Remove(to) // fails unless nothing was there to copy
	return nil
}

// segmentFile is a segment that is not a spare.
type segmentFile struct {
	name     string
	lane     schema.Lane // zero if the header is damaged
	firstSeq uint64      // 0 if the header is damaged
}

// usedSegments returns a folder's segments that are not spares, without gaps in their lanes. While it reads the folder,
// segments become active and new ones are created. So it reads the folder twice: all segments before one that was
// active the first time are there the second time, unless they are acknowledged. Newer segments are left out.
func (c copier) usedSegments(dir string) (used []segmentFile, err error) {
	first, err := c.activeSegments(dir)
	if err != nil {
		return nil, err
	}
	newest := make(map[schema.Lane]uint64)
	for _, s := range first {
		newest[s.lane] = max(newest[s.lane], s.firstSeq)
	}
	used, err = c.activeSegments(dir)
	return slices.DeleteFunc(used, func(s segmentFile) bool { return s.firstSeq > newest[s.lane] }), err
}

func (c copier) activeSegments(dir string) (active []segmentFile, err error) {
	entries, err := readDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".segment" {
			continue
		}
		path := filepath.Join(dir, e.Name())
		c.look(path)
		s, lane, err := openSegment(path, nil)
		switch {
		case errors.Is(err, errUnused), errors.Is(err, fs.ErrNotExist): // a spare, or all its clicks are acknowledged
		case errors.Is(err, errDamagedHeader):
			active = append(active, segmentFile{name: e.Name()})
		case err != nil:
			return nil, err
		default:
			active = append(active, segmentFile{e.Name(), lane, s.firstSeq})
			if err := s.unmap(); err != nil {
				return nil, err
			}
		}
	}
	return active, nil
}

// copySegment copies the header and the records of a segment, or all of it if it is damaged.
func copySegment(from, to string) error {
	s, _, err := openSegment(from, nil)
	if errors.Is(err, errDamagedHeader) {
		return copyFile(from, to)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	end, damaged := start, false
	for r, next := range s.all() {
		damaged = damaged || r.pos > end.pos
		end = next
	}
	if _, tail := s.rest(end); damaged || tail {
		return errors.Join(copyFile(from, to), s.unmap())
	}
	// A write from a page that the kernel cannot provide returns an error.
	return errors.Join(os.WriteFile(to, s.data[:end.pos], 0o600), s.unmap())
}

// copyFile copies a file if it exists.
func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o600)
}

// readDir is os.ReadDir, but a folder that was removed is empty.
func readDir(dir string) ([]os.DirEntry, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}
