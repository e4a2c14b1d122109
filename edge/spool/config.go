package spool

import (
	"errors"
	"flag"
	"fmt"
	"time"

	"linkstream/schema/service"
)

const (
	minSegments     = 4 // per lane: one active, one spare, and some to ship
	maxDefaultLanes = 8 // more lanes would only make batches smaller
)

// Config sets where and how a spool stores clicks.
type Config struct {
	Dir          string        // set by the program
	MaxBytes     int64         // of all segments together
	SegmentBytes int           // of one segment
	Lanes        int           // 0: one per CPU, at most 8
	Sync         time.Duration // how often clicks are written to the disk

	// OnSync, if it is not nil, is called when the first size bytes of a file, or the names in a folder, are on the disk.
	OnSync func(path string, size int)
	// OnSegment, if it is not nil, is called before a segment is created, ahead of time or because a click needs it. Its error is
	// that of the disk.
	OnSegment func(ahead bool) error
	// Now and Uptime, if they are not nil, replace the wall clock and the monotonic clock.
	Now    func() time.Time
	Uptime func() time.Duration
}

// DefaultConfig returns a configuration that works once Dir is set.
func DefaultConfig() Config {
	return Config{MaxBytes: 1 << 30, SegmentBytes: 2 << 20, Sync: time.Second}
}

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.Int64Var(&c.MaxBytes, "spool.max-bytes", c.MaxBytes,
		"maximum disk `bytes` for clicks that wait for the broker; when they are used up, clicks are dropped")
	fs.IntVar(&c.SegmentBytes, "spool.segment-bytes", c.SegmentBytes, "size in `bytes` of a spool file")
	fs.IntVar(&c.Lanes, "spool.lanes", c.Lanes, "`number` of spool lanes, which are shipped independently; 0: one per CPU, at most 8")
	fs.DurationVar(&c.Sync, "spool.sync", c.Sync,
		"`interval` at which clicks are written to the disk; a power failure may lose the clicks of one interval")
}

// Validate returns every invalid setting.
func (c *Config) Validate() error {
	var errs []error
	if c.Lanes < 0 || c.Lanes > 64 {
		errs = append(errs, fmt.Errorf("-spool.lanes: %d is not between 0 and 64", c.Lanes))
	}
	if c.SegmentBytes < 4<<10 || c.SegmentBytes > 1<<30 {
		errs = append(errs, fmt.Errorf("-spool.segment-bytes: %d is not between 4 KiB and 1 GiB", c.SegmentBytes))
	}
	if c.MaxBytes < minSegments*int64(c.laneCount())*int64(c.SegmentBytes) {
		errs = append(errs, fmt.Errorf("-spool.max-bytes: %d is less than %d spool files for each of %d lanes",
			c.MaxBytes, minSegments, c.laneCount()))
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

func (c *Config) laneCount() int {
	if c.Lanes > 0 {
		return c.Lanes
	}
	return min(service.CPUs(), maxDefaultLanes)
}
