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

// laneEndsName is a file in a spool's directory with the number of clicks that a lane had when its last segment was
// removed. It shows whether the broker has lost clicks at the end of a lane that it had acknowledged. Each entry has
// 40 bytes:
//
//	incarnation 16 | lane 4 | crc 4 | last seq 8 | Unix time in milliseconds 8
//
// The checksum covers all other bytes. Entries are appended; an entry whose check fails is ignored.
const (
	laneEndsName = "ended"
	laneEndBytes = 40
	// maxLaneEnds bounds the bytes of the file: beyond it, Open keeps the later half. There is an entry per lane and start
	// of a process.
	maxLaneEnds = 1 << 20
)

// noteLaneEnd appends a lane's last seq to the file, before its last segment is removed.
func (s *Spool) noteLaneEnd(l *Lane) {
	seq := l.seq.Load()
	if seq == 0 {
		return
	}
	path := filepath.Join(s.cfg.Dir, laneEndsName)
	if err := appendTo(path, encodeLaneEnd(l.id, seq, s.cfg.now())); err != nil {
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

func encodeLaneEnd(lane schema.Lane, seq uint64, at time.Time) []byte {
	entry := make([]byte, laneEndBytes)
	copy(entry, lane.Incarnation[:])
	binary.LittleEndian.PutUint32(entry[16:], lane.Number)
	binary.LittleEndian.PutUint64(entry[24:], seq)
	binary.LittleEndian.PutUint64(entry[32:], uint64(at.UnixMilli()))
	binary.LittleEndian.PutUint32(entry[20:], laneEndChecksum(entry))
	return entry
}

func laneEndChecksum(entry []byte) uint32 {
	return crc32.Update(crc32.Checksum(entry[:20], castagnoli), castagnoli, entry[24:])
}

// decodeLaneEnds calls each for the entries whose check succeeds.
func decodeLaneEnds(data []byte, each func(lane schema.Lane, seq uint64)) {
	for ; len(data) >= laneEndBytes; data = data[laneEndBytes:] {
		entry := data[:laneEndBytes]
		seq := binary.LittleEndian.Uint64(entry[24:])
		if binary.LittleEndian.Uint32(entry[20:]) == laneEndChecksum(entry) && seq > 0 && seq <= schema.MaxSeq {
			each(schema.Lane{Incarnation: schema.Incarnation(entry), Number: binary.LittleEndian.Uint32(entry[16:])}, seq)
		}
	}
}

// boundLaneEnds makes the file shorter if it is too long, and removes a last entry that a full disk has cut off.
func boundLaneEnds(path string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	keep := data[:len(data)-len(data)%laneEndBytes]
	if len(keep) > maxLaneEnds {
		keep = keep[len(keep)-maxLaneEnds/2/laneEndBytes*laneEndBytes:]
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
