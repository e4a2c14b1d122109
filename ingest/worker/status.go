package worker

import (
	"errors"
	"fmt"
	"sync"

	"github.com/VictoriaMetrics/metrics"
)

// status is what a worker tells its operator.
type status struct {
	counted, repeated, missing, dead, deleted, failures *metrics.Counter

	mu         sync.Mutex
	partitions map[int]partitionStatus
	member     bool
	assigned   int // how many partitions a member has been given
}

// tally is what became of the records of a batch.
type tally struct {
	counted  int // clicks
	repeated int // clicks that had been counted before
	missing  int // clicks of a lane that never came
	dead     int // records that are not clicks
	deleted  int // records that the topic's retention deleted before they were counted
}

type partitionStatus struct {
	lag     int64 // records not counted when last looked
	failure error // of the last step
}

func newStatus(set *metrics.Set) *status {
	counter := func(name string) *metrics.Counter { return set.NewCounter("linkstream_ingest_" + name + "_total") }
	s := &status{
		counted: counter("clicks_counted"), repeated: counter("clicks_repeated"), missing: counter("clicks_missing"),
		dead: counter("records_dead"), deleted: counter("records_deleted"), failures: counter("failures"),
		partitions: make(map[int]partitionStatus),
	}
	set.NewGauge("linkstream_ingest_partitions", func() float64 { n, _ := s.sum(); return float64(n) })
	set.NewGauge("linkstream_ingest_lag_records", func() float64 { _, lag := s.sum(); return float64(lag) })
	return s
}

func (s *status) add(t tally) {
	s.counted.Add(t.counted)
	s.repeated.Add(t.repeated)
	s.missing.Add(t.missing)
	s.dead.Add(t.dead)
	s.deleted.Add(t.deleted)
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
	if !s.member {
		return errors.New("waiting for the consumer group")
	}
	for n, p := range s.partitions {
		if p.failure != nil {
			return fmt.Errorf("partition %d: %w", n, p.failure)
		}
	}
	if len(s.partitions) < s.assigned {
		return fmt.Errorf("%d of %d partitions have yet to be looked up", s.assigned-len(s.partitions), s.assigned)
	}
	return nil
}

func (s *status) join(assigned int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.member, s.assigned = true, assigned
}

func (s *status) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.member = false
}

// take makes the partition one that the worker counts. What failed before has yet to succeed.
func (s *status) take(partition int) {
	s.update(partition, func(*partitionStatus) {})
}

func (s *status) setLag(partition int, lag int64) {
	s.update(partition, func(p *partitionStatus) { p.lag = lag })
}

func (s *status) setFailure(partition int, err error) {
	if err != nil {
		s.failures.Inc()
	}
	s.update(partition, func(p *partitionStatus) { p.failure = err })
}

func (s *status) update(partition int, change func(*partitionStatus)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.partitions[partition]
	change(&p)
	s.partitions[partition] = p
}

func (s *status) forget(partition int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.partitions, partition)
}
