package spool

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"linkstream/schema/service"
)

const (
	minSegments     = 4 // per lane: one active, one spare, and some to ship
	minSegmentBytes = 4 << 10
	maxSegmentBytes = 2 << 20
	// defaultSegments is how many segments of a lane a spool has room for, unless they would be larger than
	// maxSegmentBytes.
	defaultSegments = 64
	maxDefaultLanes = 8 // more lanes would only make batches smaller
)

// Config sets where and how a spool stores clicks.
type Config struct {
	Dir          string        // set by the program
	MaxBytes     int64         // of all segments together
	SegmentBytes int           // of one segment; 0: 2 MiB, less in a small spool; not a flag
	Lanes        int           // 0: one per CPU, at most 8; not a flag
	Sync         time.Duration // how often clicks are written to the disk

	// BatchBytes is approximately the maximum size of a batch of clicks; 0: below the limit that brokers have by default.
	// Not a flag.
	BatchBytes int
	// Await, if it is not nil, waits before each batch of a lane until the topic wants it, or until ctx is done.
	Await func(ctx context.Context)

	// OnSync, if it is not nil, is called when the first size bytes of a file, or the names in a folder, are on the disk.
	OnSync func(path string, size int)
	// OnSegment, if it is not nil, is called before a segment is created, ahead of time or because a click needs it. Its
	// error is handled as an error of the disk.
	OnSegment func(ahead bool) error
	// Now and Uptime, if they are not nil, replace the wall clock and the monotonic clock.
	Now    func() time.Time
	Uptime func() time.Duration
}

// DefaultConfig returns a configuration that works once Dir is set.
func DefaultConfig() Config {
	return Config{MaxBytes: 1 << 30, Sync: time.Second}
}

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.Int64Var(&c.MaxBytes, "spool.max-bytes", c.MaxBytes,
		"maximum disk `bytes` for clicks that wait for the broker; when they are used up, clicks are dropped")
	fs.DurationVar(&c.Sync, "spool.sync", c.Sync,
		"`interval` at which clicks are written to the disk; a power failure may lose the clicks of one interval")
}

// Validate returns every invalid setting.
func (c *Config) Validate() error {
	var errs []error
	if least := minSegments * c.laneCount() * c.segmentBytes(); c.MaxBytes < int64(least) {
		errs = append(errs, fmt.Errorf("-spool.max-bytes: %d is less than %d", c.MaxBytes, least))
	}
	if c.SegmentBytes > maxFileLen {
		errs = append(errs, fmt.Errorf("a segment of %d bytes is larger than %d", c.SegmentBytes, maxFileLen))
	}
	if c.Sync <= 0 {
		errs = append(errs, fmt.Errorf("-spool.sync: %v is not positive", c.Sync))
	}
	return errors.Join(errs...)
}

// now returns the time by the wall clock alone, which may be set back.
func (c *Config) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now().Round(0)
}

// segmentBytes returns SegmentBytes, or the default: a multiple of minSegmentBytes.
func (c *Config) segmentBytes() int {
	if c.SegmentBytes > 0 {
		return c.SegmentBytes
	}
	size := c.MaxBytes / int64(defaultSegments*c.laneCount())
	return int(min(max(size-size%minSegmentBytes, minSegmentBytes), maxSegmentBytes))
}

func (c *Config) batchBytes() int { return cmp.Or(c.BatchBytes, maxBatchBytes) }

func (c *Config) laneCount() int {
	if c.Lanes > 0 {
		return c.Lanes
	}
	return min(service.CPUs(), maxDefaultLanes)
}
