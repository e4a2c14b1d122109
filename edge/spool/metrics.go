package spool

import (
	"errors"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"golang.org/x/sys/unix"

	"linkstream/schema/service"
)

// RegisterMetrics adds the spool's metrics to set.
func (s *Spool) RegisterMetrics(set *metrics.Set) {
	service.NewGauge(set, "linkstream_edge_spool_pending_clicks", "Clicks that wait for the broker.",
		func() float64 { return float64(s.Pending()) })
	service.NewGauge(set, "linkstream_edge_oldest_click_seconds",
		"Age of the oldest click that waits for the broker; 0 if none does.",
		func() float64 { return s.oldest().Seconds() })
	service.NewGauge(set, "linkstream_edge_disk_free_bytes",
		"Disk space that is free where the spool is; 0 if it is not known.",
		func() float64 { return s.disk().free })
	service.NewGauge(set, "linkstream_edge_disk_bytes", "Size of the disk where the spool is; 0 if it is not known.",
		func() float64 { return s.disk().size })
	service.NewGauge(set, "linkstream_edge_spool_bytes", "Disk space that the spool takes.",
		func() float64 { return float64(s.used.Load()) })
	service.NewGauge(set, "linkstream_edge_spool_max_bytes", "Disk space that the spool may take.",
		func() float64 { return float64(s.cfg.MaxBytes) })
	service.NewGauge(set, "linkstream_edge_clicks_recorded_total", "Clicks appended to the spool since the start.",
		func() float64 { return float64(s.recorded()) })
	service.NewGauge(set, "linkstream_edge_clicks_dropped_total",
		"Clicks that found no room in the spool since the start.",
		func() float64 { return float64(s.dropped.Load()) })
	service.NewGauge(set, "linkstream_edge_clicks_refused_total",
		"Clicks that the topic does not accept, set aside since the start.",
		func() float64 { return float64(s.refused.Load()) })
	service.NewGauge(set, "linkstream_edge_spool_damaged_total",
		"Segments of which clicks could not be read since the start.",
		func() float64 { return float64(s.damaged.Load()) })
}

// RegisterMetrics adds the shipper's metrics to set.
func (s *Shipper) RegisterMetrics(set *metrics.Set) {
	service.NewGauge(set, "linkstream_edge_clicks_shipped_total",
		"Clicks that the broker has acknowledged since the start.",
		func() float64 { return float64(s.shipped.Load()) })
	service.NewGauge(set, "linkstream_edge_ship_failures_total", "Batches of clicks that the broker did not acknowledge.",
		func() float64 { return float64(s.failures.Load()) })
}

// recorded returns the number of clicks appended since the start.
func (s *Spool) recorded() (n uint64) {
	for _, l := range s.lanes {
		n += l.seq.Load()
	}
	return n
}

// oldest returns the age of the oldest click that waits for the broker.
func (s *Spool) oldest() time.Duration {
	if _, at := s.Waiting(); !at.IsZero() {
		return max(0, s.cfg.now().Sub(at))
	}
	return 0
}

// Waiting returns the number of clicks that are not acknowledged, and the time of the oldest one that was sent, or the
// zero time.
func (s *Spool) Waiting() (clicks uint64, oldest time.Time) {
	for _, l := range s.Lanes() {
		clicks += l.Pending()
		if ms := l.oldest.Load(); ms != 0 && (oldest.IsZero() || ms < oldest.UnixMilli()) {
			oldest = time.UnixMilli(ms)
		}
	}
	return clicks, oldest
}

// room is the space of a file system in bytes.
type room struct{ free, size float64 }

// disk returns the space of the spool's file system, or zeros after an error.
func (s *Spool) disk() room {
	var stat unix.Statfs_t
	if unix.Statfs(s.cfg.Dir, &stat) != nil {
		return room{}
	}
	block := float64(stat.Bsize)
	return room{free: block * float64(stat.Bavail), size: block * float64(stat.Blocks)}
}

// Ready returns nil if there is room for another segment.
func (s *Spool) Ready() error {
	if s.used.Load()+int64(s.cfg.SegmentBytes) > s.cfg.MaxBytes {
		return errors.New("the spool is nearly full: the broker has not accepted clicks for some time")
	}
	if s.diskFull.Load() {
		for _, l := range s.lanes { // try again here: without requests no lane does
			s.requestSpare(l)
		}
		return errors.New("cannot create another spool file: is the disk full?")
	}
	return nil
}
