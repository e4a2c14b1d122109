package spool

import (
	"errors"

	"github.com/VictoriaMetrics/metrics"
)

// RegisterMetrics adds the spool's metrics to set.
func (s *Spool) RegisterMetrics(set *metrics.Set) {
	set.NewGauge("linkstream_edge_spool_pending_clicks", func() float64 { return float64(s.Pending()) })
	set.NewGauge("linkstream_edge_spool_bytes", func() float64 { return float64(s.used.Load()) })
	set.NewGauge("linkstream_edge_spool_max_bytes", func() float64 { return float64(s.cfg.MaxBytes) })
	set.NewGauge("linkstream_edge_clicks_recorded_total", func() float64 { return float64(s.recorded()) })
	set.NewGauge("linkstream_edge_clicks_dropped_total", func() float64 { return float64(s.dropped.Load()) })
}

// RegisterMetrics adds the shipper's metrics to set.
func (s *Shipper) RegisterMetrics(set *metrics.Set) {
	set.NewGauge("linkstream_edge_clicks_shipped_total", func() float64 { return float64(s.shipped.Load()) })
	set.NewGauge("linkstream_edge_ship_failures_total", func() float64 { return float64(s.failures.Load()) })
}

// recorded returns the number of clicks appended since the start.
func (s *Spool) recorded() (n uint64) {
	for _, l := range s.lanes {
		n += l.seq.Load()
	}
	return n
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
