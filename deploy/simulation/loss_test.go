package simulation_test

import "linkstream/schema"

// loseRecords removes the end of a random partition's log, as a broker does that loses power, or all of it, as happens when
// the topic is created again. Offsets are then given to other records.
func (s *simulation) loseRecords() {
	partition := s.random.IntN(len(s.broker.partitions))
	log := s.broker.partitions[partition]
	if len(log) == 0 {
		return
	}
	keep := s.random.IntN(len(log))
	if s.random.IntN(2) == 0 {
		keep = 0
	}
	if keep == 0 {
		s.occurred[logReplaced]++
	} else {
		s.occurred[logTruncated]++
	}
	s.broker.partitions[partition] = log[:keep:keep]
	s.broker.restarts[partition]++
	safe := make(map[int64]bool)
	for _, row := range s.store.rows {
		safe[row.link] = true
	}
	for _, value := range log[:keep] {
		safe[s.linkOf(value)] = true
	}
	for _, value := range log[keep:] {
		if link := s.linkOf(value); !safe[link] {
			s.lost[link] = true
		}
	}
}

func (s *simulation) linkOf(value []byte) int64 {
	var click schema.Click
	if err := schema.DecodeClick(value, &click); err != nil {
		s.addViolation("a record is not a click: %v", err)
	}
	return click.LinkID
}
