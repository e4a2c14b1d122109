package worker

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/VictoriaMetrics/metrics"
)

// status is what a worker tells its operator.
type status struct {
	counted, repeated, missing, dead, failures atomic.Uint64

	mu         sync.Mutex
	partitions map[int]partitionStatus
}

type partitionStatus struct {
	lag     int64 // records not counted when last looked
	failure error // of the last step
}

func (s *status) register(set *metrics.Set) {
	counter := func(name string, v *atomic.Uint64) {
		set.NewGauge("linkstream_ingest_"+name+"_total", func() float64 { return float64(v.Load()) })
	}
	counter("clicks_counted", &s.counted)
	counter("clicks_repeated", &s.repeated)
	counter("clicks_missing", &s.missing)
	counter("records_dead", &s.dead)
	counter("failures", &s.failures)
	set.NewGauge("linkstream_ingest_partitions", func() float64 { n, _ := s.sum(); return float64(n) })
	set.NewGauge("linkstream_ingest_lag_records", func() float64 { _, lag := s.sum(); return float64(lag) })
}

func (s *status) sum() (partitions int, lag int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.partitions {
		lag += p.lag
	}
	return len(s.partitions), lag
}

func (s *status) ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.partitions) == 0 {
		return errors.New("waiting for the consumer group")
	}
	for n, p := range s.partitions {
		if p.failure != nil {
			return fmt.Errorf("partition %d: %w", n, p.failure)
		}
	}
	return nil
}

func (s *status) setLag(partition int, lag int64) {
	s.update(partition, func(p *partitionStatus) { p.lag = lag })
}

func (s *status) setFailure(partition int, err error) {
	if err != nil {
		s.failures.Add(1)
	}
	s.update(partition, func(p *partitionStatus) { p.failure = err })
}

func (s *status) update(partition int, change func(*partitionStatus)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.partitions == nil {
		s.partitions = make(map[int]partitionStatus)
	}
	p := s.partitions[partition]
	change(&p)
	s.partitions[partition] = p
}

func (s *status) forget(partition int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.partitions, partition)
}
