//go:build !race

package simulation_test

import (
	"bytes"
	"slices"

	"linkstream/schema"
)

// losing calls event, which may destroy copies of clicks. Clicks that are neither counted nor in a log any more, and
// were, may be missing in the end.
func (s *simulation) losing(event func()) {
	before := s.safe()
	event()
	after := s.safe()
	for link := range before {
		if !after[link] {
			s.lost[link] = true
		}
	}
}

// safe returns the clicks that are counted, or in a log. A click of which a log has a repetition only, because the
// first copy was deleted or cut off, is not safe: later clicks of the lane come before the repetition.
func (s *simulation) safe() map[int64]bool {
	safe := make(map[int64]bool)
	for _, log := range s.broker.partitions {
		highest := make(map[schema.Lane]uint64)
		for offset, value := range log.records {
			click := s.decode(bytes.Clone(value))
			if click.Seq > highest[click.Lane] {
				highest[click.Lane] = click.Seq
				if int64(offset) >= log.start {
					safe[click.LinkID] = true
				}
			}
		}
	}
	for link := range s.counted() {
		safe[link] = true
	}
	return safe
}

// loseRecords removes the end of a random partition's log, as a broker does that loses power, or all of it, as happens
// when the topic is created again. Offsets are then given to other records.
func (s *simulation) loseRecords() {
	log := &s.broker.partitions[s.random.IntN(len(s.broker.partitions))]
	if log.end() == log.start {
		return
	}
	keep := log.start + s.random.Int64N(log.end()-log.start)
	if s.random.IntN(2) == 0 {
		keep = 0
	}
	if keep == 0 {
		s.occur(logReplaced)
		log.start = 0
	} else {
		s.occur(logTruncated)
	}
	log.records = log.records[:keep:keep]
	log.restarts++
}

// deleteOldest deletes the oldest records of a random partition's log, as retention does.
func (s *simulation) deleteOldest() {
	log := &s.broker.partitions[s.random.IntN(len(s.broker.partitions))]
	if log.end() == log.start {
		return
	}
	s.occur(recordsDeleted)
	log.start += 1 + s.random.Int64N(log.end()-log.start)
}

// removePartition creates the topic again with one partition less, whose log is lost, and with the logs of the others.
func (s *simulation) removePartition() {
	if len(s.broker.partitions) == 1 {
		return
	}
	s.occur(topicShrinks)
	last := len(s.broker.partitions) - 1
	s.removedRestarts += s.broker.partitions[last].restarts + 1
	s.broker.partitions = s.broker.partitions[:last]
	// A request that is under way ends with its partition. ARCHITECTURE.md says what happens otherwise.
	s.broker.delayed = slices.DeleteFunc(s.broker.delayed, func(d delayedRequest) bool { return d.partition == last })
	s.shrunkAt = s.seconds
}

// moveLanes removes partitions, and adds some when only one is left. Lanes have the time to move in between.
func (s *simulation) moveLanes() {
	if s.seconds < s.shrunkAt+65 {
		return
	}
	if len(s.broker.partitions) > 1 {
		s.losing(s.removePartition)
		return
	}
	for range 3 {
		s.growTopic()
	}
}

// clickAndSuspend lets other workers insert while one is suspended.
func (s *simulation) clickAndSuspend() {
	s.edge.click()
	s.overlapWorkers()
	if s.random.IntN(4) == 0 {
		s.suspend()
	}
	for range s.random.IntN(20) {
		s.resumeTask()
	}
}

// endLostWorkers ends the workers of partitions that the topic does not have. Nobody assigns them, and what they have
// fetched expires before a lane is bound to another partition.
func (s *simulation) endLostWorkers() {
	if s.seconds < s.shrunkAt+insertWithin {
		return
	}
	kept := s.workers[:0]
	for _, w := range s.workers {
		if w.partition < len(s.broker.partitions) {
			kept = append(kept, w)
		} else {
			w.kill()
		}
	}
	s.workers = kept
}

// restoreStore sets the store back to an earlier day. Workers are stopped meanwhile.
func (s *simulation) restoreStore() {
	if s.backup == nil {
		return
	}
	s.occur(storeRestored)
	for _, w := range s.workers {
		w.kill()
	}
	s.workers = nil
	s.store.restore(s.backup, s.random.IntN(2) == 0)
	for partition := range s.broker.partitions {
		s.addWorker(partition)
	}
}

func (s *simulation) linkOf(value []byte) int64 { return s.decode(value).LinkID }

func (s *simulation) decode(value []byte) (click schema.Click) {
	if err := schema.DecodeClick(value, &click); err != nil {
		s.addViolation("a record is not a click: %v", err)
	}
	return click
}
