package worker

import (
	"errors"
	"fmt"
	"sync"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/ingest/count"
	"linkstream/schema/service"
)

// status holds a worker's metrics and readiness.
type status struct {
	count.Metrics
	dead, forged, deleted, epochs *metrics.Counter

	mu         sync.Mutex
	partitions map[int]partitionStatus // whose position is loaded, or whose first Step failed
	member     bool                    // of the consumer group
	assigned   int                     // partitions that the group assigns to this member
}

// results counts the records of a batch by their outcome.
type results struct {
	counted  int // clicks inserted
	repeated int // clicks dropped because they were counted before
	missing  int // sequence numbers of a lane that the topic does not have
	dead     int // records that cannot be counted
	forged   int // the ones among them with a number that no edge has reached
	deleted  int // records that retention deleted before they were counted
}

type partitionStatus struct {
	next    int64 // the position, as last known
	end     int64 // the log end offset, as last known
	failure error // of the last Step
}

func newStatus(set *metrics.Set) *status {
	s := &status{
		Metrics: count.NewMetrics(set),
		dead:    count.Counter(set, "records_dead", "Records that cannot be counted, moved to the dead letter topic."),
		forged:  count.Counter(set, "records_forged", "Those of them that no edge has sent: their numbers are too high."),
		deleted: count.Counter(set, "records_deleted", "Records that retention deleted before they were counted."),
		epochs: count.Counter(set, "log_epochs",
			"Logs that a worker counted from their start because it did not recognize them."),
		partitions: make(map[int]partitionStatus),
	}
	service.NewGauge(set, "linkstream_ingest_partitions", "Partitions that this worker counts.",
		func() float64 { n, _ := s.totals(); return float64(n) })
	service.NewGauge(set, "linkstream_ingest_lag_records", "Records that wait to be counted.",
		func() float64 { _, lag := s.totals(); return float64(lag) })
	return s
}

func (s *status) add(r results) {
	s.Counted.Add(r.counted)
	s.Repeated.Add(r.repeated)
	s.Missing.Add(r.missing)
	s.dead.Add(r.dead)
	s.forged.Add(r.forged)
	s.deleted.Add(r.deleted)
}

func (s *status) totals() (partitions int, lag int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.partitions {
		lag += max(0, p.end-p.next)
	}
	return len(s.partitions), lag
}

// ready returns nil if the worker is a member of the group and counts each assigned partition without an error.
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
		return fmt.Errorf("loading the positions of %d of %d partitions", s.assigned-len(s.partitions), s.assigned)
	}
	return nil
}

func (s *status) joined(assigned int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.member, s.assigned = true, assigned
}

func (s *status) left() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.member = false
}

// setNext sets the position. It adds a partition, and keeps a failure: only a Step that succeeds clears it.
func (s *status) setNext(partition int, next int64) {
	s.update(partition, func(p *partitionStatus) { p.next = next })
}

func (s *status) setEnd(partition int, end int64) {
	s.update(partition, func(p *partitionStatus) { p.end = end })
}

// uncounted sets the end, and the position if it is not loaded.
func (s *status) uncounted(partition int, next, end int64) {
	s.update(partition, func(p *partitionStatus) { p.next, p.end = max(p.next, next), end })
}

func (s *status) setFailure(partition int, err error) {
	if err != nil {
		s.Failures.Inc()
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

func (s *status) removePartition(partition int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.partitions, partition)
}
