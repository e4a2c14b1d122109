package worker

import (
	"errors"
	"fmt"
	"sync"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema/service"
)

// status holds a worker's metrics and readiness.
type status struct {
	counted, repeated, missing, dead, deleted, epochs, failures *metrics.Counter
	inserts                                                     *service.Histogram

	mu         sync.Mutex
	partitions map[int]partitionStatus // whose position is loaded, or whose first Step failed
	member     bool                    // of the consumer group
	assigned   int                     // partitions that the group assigns to this member
}

// results says what happened to the records of a batch.
type results struct {
	counted  int // clicks inserted
	repeated int // clicks dropped because they were counted before
	missing  int // sequence numbers of a lane that the topic does not have
	dead     int // records that are not clicks
	deleted  int // records that retention deleted before they were counted
}

type partitionStatus struct {
	lag     int64 // records after the last one fetched
	failure error // of the last Step
	counted int64 // offset of the last counted click, if the log is known to have it
	known   bool
}

func newStatus(set *metrics.Set) *status {
	counter := func(name, help string) *metrics.Counter {
		name = "linkstream_ingest_" + name + "_total"
		service.Describe(set, name, help)
		return set.NewCounter(name)
	}
	s := &status{
		counted:  counter("clicks_counted", "Clicks inserted into the click store."),
		repeated: counter("clicks_repeated", "Clicks dropped because they were counted before."),
		missing:  counter("clicks_missing", "Clicks that a gap in a lane shows to be lost."),
		dead:     counter("records_dead", "Records that are not clicks, moved to the dead letter topic."),
		deleted:  counter("records_deleted", "Records that retention deleted before they were counted."),
		epochs:   counter("log_epochs", "Logs that a worker counted from their start because it did not recognize them."),
		failures: counter("failures", "Attempts to count a batch that failed and are repeated."),
		inserts: service.NewHistogram(set, "linkstream_ingest_insert_seconds",
			"Seconds that the click store takes to insert a batch, failures included."),
		partitions: make(map[int]partitionStatus),
	}
	service.Describe(set, "linkstream_ingest_partitions", "Partitions that this worker counts.")
	service.Describe(set, "linkstream_ingest_lag_records", "Records that wait to be counted.")
	set.NewGauge("linkstream_ingest_partitions", func() float64 { n, _ := s.totals(); return float64(n) })
	set.NewGauge("linkstream_ingest_lag_records", func() float64 { _, lag := s.totals(); return float64(lag) })
	return s
}

func (s *status) add(r results) {
	s.counted.Add(r.counted)
	s.repeated.Add(r.repeated)
	s.missing.Add(r.missing)
	s.dead.Add(r.dead)
	s.deleted.Add(r.deleted)
}

func (s *status) totals() (partitions int, lag int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.partitions {
		lag += p.lag
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

// setCounted adds a partition, or sets the offset of its last counted click: -1 if the log may not have it. It keeps a
// failure: only a Step that succeeds clears it.
func (s *status) setCounted(partition int, offset int64) {
	s.mu.Lock() // without update, whose argument allocates
	defer s.mu.Unlock()
	p := s.partitions[partition]
	p.counted, p.known = offset, offset >= 0
	s.partitions[partition] = p
}

// lastCounted returns the offset of each partition's last counted click, of partitions whose log is known to have it.
func (s *status) lastCounted() map[int]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	offsets := make(map[int]int64)
	for n, p := range s.partitions {
		if p.known {
			offsets[n] = p.counted
		}
	}
	return offsets
}

func (s *status) removePartition(partition int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.partitions, partition)
}
