package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"linkstream/schema"
)

// Suffixes of files with clicks that the spool could not ship. They stay until an operator removes them.
const (
	damagedSuffix = ".damaged" // a segment with a header or records that fail their check
	refusedSuffix = ".refused" // clicks that are never accepted: for each one its length in 4 bytes, and the click
)

// keepRefused writes a click that the broker refuses for good to the lane's file of such clicks. It fails with errFull
// if the spool has no room.
func (s *Spool) keepRefused(lane schema.Lane, click []byte) error {
	size := int64(4 + len(click))
	if s.used.Add(size) > s.cfg.MaxBytes {
		s.used.Add(-size)
		return fmt.Errorf("keep a refused click: %w", errFull)
	}
	dir := filepath.Join(s.cfg.Dir, lane.Incarnation.String())
	err := s.appendFile(filepath.Join(dir, fmt.Sprintf("%02d%s", lane.Number, refusedSuffix)), click)
	if err == nil {
		err = s.syncDir(dir)
	}
	if err != nil {
		s.used.Add(-size)
		return fmt.Errorf("keep a refused click: %w", err)
	}
	s.refused.Add(1)
	return nil
}

// appendFile appends a click and syncs the file.
func (s *Spool) appendFile(path string, click []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(click))), click...))
	return errors.Join(err, s.fsync(f), f.Close())
}

// UnshippableFiles returns the paths of the files in a spool's directory with clicks that cannot be shipped.
func UnshippableFiles(dir string) (paths []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && slices.Contains([]string{damagedSuffix, refusedSuffix}, filepath.Ext(path)) {
			paths = append(paths, path)
		}
		return err
	})
	return paths, err
}
