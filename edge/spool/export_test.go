package spool

import (
	"context"
	"os"

	"linkstream/schema"
)

// MaxLaneEnds is the size of the file of lane ends beyond which Open makes it shorter.
const MaxLaneEnds = maxLaneEnds

// EncodeLaneEnd returns an entry of that file.
var EncodeLaneEnd = encodeLaneEnd

// ScanSegment calls scanSegment and returns the first seq, 0 for none, and the number of clicks.
func ScanSegment(data []byte) (lane schema.Lane, firstSeq, clicks uint64, err error) {
	lane, s, err := scanSegment(data)
	for _, r := range s.clicks {
		clicks += r.Len()
	}
	return lane, s.firstSeq, clicks, err
}

// ScanRefused is scanRefused.
var ScanRefused = scanRefused

// Hold locks a lane as an Append that waits for the disk does.
func (l *Lane) Hold() (release func()) {
	l.mu.Lock()
	return l.mu.Unlock
}

// AwaitClick is awaitClick.
func (l *Lane) AwaitClick(ctx context.Context, last uint64) { l.awaitClick(ctx, last) }

// HasSpare reports whether the lane has a segment for the time when its active one is full.
func (l *Lane) HasSpare() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spare != nil
}

// OnFsync calls f before each fsync(2) from now on, which fails with f's error.
func (s *Spool) OnFsync(f func(path string) error) {
	s.fsync = func(file *os.File) error {
		if err := f(file.Name()); err != nil {
			return err
		}
		return file.Sync()
	}
}

// Used returns the bytes that count towards the limit.
func (s *Spool) Used() int64 { return s.used.Load() }

// Acknowledged returns the seq of the last click acknowledged.
func (l *Lane) Acknowledged() uint64 { return l.acked.Load() }

// Last returns the seq of the last click appended.
func (l *Lane) Last() uint64 { return l.seq.Load() }

// CopyLooking is Copy that calls look before each look at a segment.
func CopyLooking(from, to string, look func(path string)) error { return copier{look}.copy(from, to) }
