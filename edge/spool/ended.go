package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"time"

	"linkstream/schema"
)

// endedName is a file in a spool's directory that says how many clicks a lane had when its last segment was removed.
// With it, clicks at the end of a lane can be missed that the broker has acknowledged and then lost. Each entry has 40
// bytes:
//
//	incarnation 16 | lane 4 | crc 4 | last seq 8 | Unix time in milliseconds 8
//
// The checksum covers all other bytes. Entries are appended; an entry whose check fails is ignored.
const (
	endedName  = "ended"
	endedBytes = 40
	// maxEnded bounds the file: beyond it, Open keeps the later half. There is an entry per lane and start of a process.
	maxEnded = 1 << 20
)

// noteEnd appends a lane's last seq to the file, before its last segment is removed.
func (s *Spool) noteEnd(l *Lane) {
	seq := l.seq.Load()
	if seq == 0 {
		return
	}
	path := filepath.Join(s.cfg.Dir, endedName)
	if err := appendTo(path, encodeEnd(l.id, seq, s.cfg.now())); err != nil {
		s.log.Warn("cannot note the end of a lane: clicks at its end that are lost later are not noticed", "path", path,
			"error", err)
	}
}

func appendTo(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

func encodeEnd(lane schema.Lane, seq uint64, at time.Time) []byte {
	entry := make([]byte, endedBytes)
	copy(entry, lane.Incarnation[:])
	binary.LittleEndian.PutUint32(entry[16:], lane.Number)
	binary.LittleEndian.PutUint64(entry[24:], seq)
	binary.LittleEndian.PutUint64(entry[32:], uint64(at.UnixMilli()))
	binary.LittleEndian.PutUint32(entry[20:], endChecksum(entry))
	return entry
}

func endChecksum(entry []byte) uint32 {
	return crc32.Update(crc32.Checksum(entry[:20], castagnoli), castagnoli, entry[24:])
}

// decodeEnds calls each for the entries whose check succeeds.
func decodeEnds(data []byte, each func(lane schema.Lane, seq uint64)) {
	for ; len(data) >= endedBytes; data = data[endedBytes:] {
		entry := data[:endedBytes]
		seq := binary.LittleEndian.Uint64(entry[24:])
		if binary.LittleEndian.Uint32(entry[20:]) == endChecksum(entry) && seq > 0 && seq <= schema.MaxSeq {
			each(schema.Lane{Incarnation: schema.Incarnation(entry), Number: binary.LittleEndian.Uint32(entry[16:])}, seq)
		}
	}
}

// boundEnds makes the file shorter if it is too long, and completes its last entry, which a full disk may have cut off.
func boundEnds(path string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	keep := data[:len(data)-len(data)%endedBytes]
	if len(keep) > maxEnded {
		keep = keep[len(keep)-maxEnded/2/endedBytes*endedBytes:]
	}
	if len(keep) == len(data) {
		return nil
	}
	next := path + ".new"
	if err := os.WriteFile(next, keep, 0o600); err != nil {
		return fmt.Errorf("bound %q: %w", path, errors.Join(err, os.Remove(next)))
	}
	return os.Rename(next, path)
}
