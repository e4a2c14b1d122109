package spool

import (
	"errors"
	"flag"
	"fmt"
	"runtime"
	"time"
)

const (
	minSegments     = 4 // of a lane: one to append to, one spare, and some to ship
	maxDefaultLanes = 8 // more would only make batches smaller
)

// Config is how a spool is kept.
type Config struct {
	Dir          string        // set by the program
	MaxBytes     int64         // of all segment files
	SegmentBytes int           // of one file
	Lanes        int           // 0: one for each processor, at most 8
	Sync         time.Duration // how often appended clicks are written to the disk
}

// DefaultConfig returns a configuration that works once Dir is set.
func DefaultConfig() Config {
	return Config{MaxBytes: 1 << 30, SegmentBytes: 2 << 20, Sync: time.Second}
}

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.Int64Var(&c.MaxBytes, "spool.max-bytes", c.MaxBytes, "most disk `bytes` of clicks that wait for the broker; beyond it clicks are dropped")
	fs.IntVar(&c.SegmentBytes, "spool.segment-bytes", c.SegmentBytes, "size in `bytes` of one spool file")
	fs.IntVar(&c.Lanes, "spool.lanes", c.Lanes, "`number` of spool lanes, each shipped by itself; 0: one for each processor, at most 8")
	fs.DurationVar(&c.Sync, "spool.sync", c.Sync, "how often clicks are written to the disk: the `time` of clicks a power loss may take")
}

// Validate returns every invalid setting.
func (c *Config) Validate() error {
	var errs []error
	if c.Lanes < 0 || c.Lanes > 64 {
		errs = append(errs, fmt.Errorf("-spool.lanes: %d is not 0 to 64", c.Lanes))
	}
	if c.SegmentBytes < 4<<10 || c.SegmentBytes > 1<<30 {
		errs = append(errs, fmt.Errorf("-spool.segment-bytes: %d is not 4 KiB to 1 GiB", c.SegmentBytes))
	}
	if c.MaxBytes < minSegments*int64(c.laneCount())*int64(c.SegmentBytes) {
		errs = append(errs, fmt.Errorf("-spool.max-bytes: %d is less than %d files for each of %d lanes", c.MaxBytes, minSegments, c.laneCount()))
	}
	if c.Sync <= 0 {
		errs = append(errs, fmt.Errorf("-spool.sync: %v is not above zero", c.Sync))
	}
	return errors.Join(errs...)
}

func (c *Config) laneCount() int {
	if c.Lanes > 0 {
		return c.Lanes
	}
	return min(runtime.GOMAXPROCS(0), maxDefaultLanes)
}
