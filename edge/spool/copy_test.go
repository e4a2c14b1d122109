package spool_test

import (
	"log/slog"
	"math/rand/v2"
	"testing"

	"linkstream/edge/spool"
	"linkstream/schema"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

// machine runs an edge: it appends clicks to its spool and ships them.
type machine struct {
	*spool.Spool
	shipper *spool.Shipper
	batches map[*spool.Lane]*stream.Batch
	random  *rand.Rand
}

func newMachine(t *testing.T, cfg spool.Config, topic *topic, random *rand.Rand) *machine {
	s, _ := open(t, cfg)
	m := &machine{s, spool.NewShipper(s, topic, slog.New(slog.DiscardHandler)), make(map[*spool.Lane]*stream.Batch), random}
	for _, l := range s.Lanes() {
		m.batches[l] = new(stream.Batch)
	}
	return m
}

// ship sends a few clicks of a random lane.
func (m *machine) ship(t *testing.T) {
	lanes := m.Lanes()
	lane := lanes[m.random.IntN(len(lanes))]
	_, err := m.shipper.Ship(t.Context(), lane, m.batches[lane])
	testkit.Must(t, err)
}

// marked returns what a consumer counts that keeps a mark per lane: the number of clicks, and of those missing in gaps.
func (p *topic) marked(tb testing.TB) (counted, missing int64) {
	tb.Helper()
	type key struct {
		partition int
		lane      schema.Lane
	}
	marks := make(map[key]uint64)
	for _, a := range p.attempts {
		for _, value := range a.values {
			var c schema.Click
			testkit.Must(tb, schema.DecodeClick(value, &c))
			k := key{a.partition, c.Lane}
			if c.Seq > marks[k] {
				counted++
				missing += int64(c.Seq - marks[k] - 1)
				marks[k] = c.Seq
			}
		}
	}
	return counted, missing
}

// A machine is cloned from a copy of another one's disk, and both run. Neither loses clicks to numbers of the other.
func TestCopiedSpool(t *testing.T) {
	for seed := range uint64(20) {
		random, appended := rand.New(rand.NewPCG(seed, 0)), int64(0)
		topic := &topic{partitions: 4} // a copy that is older than the binding of a lane binds it to the same one
		cfg := config(t.TempDir(), 2)
		work := func(m *machine) {
			for range 1 + random.IntN(200) {
				appended++
				testkit.Equal(t, "room", m.Append(random.Uint64(), click(appended)), true)
			}
			for range random.IntN(4) {
				m.ship(t)
			}
		}
		original := newMachine(t, cfg, topic, random)
		work(original)
		clone := newMachine(t, kill(t, cfg), topic, random)
		for range 5 {
			work(original)
			work(clone)
		}
		for original.Pending()+clone.Pending() > 0 {
			original.ship(t)
			clone.ship(t)
		}
		counted, missing := topic.marked(t)
		testkit.Equal(t, "counted", counted, appended)
		testkit.Equal(t, "missing", missing, 0)
	}
}
