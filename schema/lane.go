package schema

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"math"
	"time"
)

// MaxSeq is the highest number of a click that every store can represent.
const MaxSeq = math.MaxInt64

// MaxLead is how far the number of a click may be ahead of its lane's mark. Clicks may be lost, in a spool or in a
// topic, but not MaxLead of them in one lane: at 100,000 per second that would be 127 days of clicks.
const MaxLead = 1 << 40

// SeqRange is the numbers First to Last of a lane.
type SeqRange struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

// Len returns how many numbers the range has.
func (r SeqRange) Len() uint64 { return r.Last - r.First + 1 }

// LaneCount is a lane's mark and number of clicks in a click store, over all partitions. If no click is lost, set aside
// or counted twice, Mark is Clicks.
type LaneCount struct {
	Lane   Lane
	Mark   uint64 // the highest of its high-water marks
	Clicks uint64 // counted
}

// Missing returns the number of uncounted clicks up to the mark: they are lost or set aside.
func (c LaneCount) Missing() uint64 { return c.Mark - min(c.Mark, c.Clicks) }

// Repeated returns how many clicks are counted more than once.
func (c LaneCount) Repeated() uint64 { return c.Clicks - min(c.Mark, c.Clicks) }

// Gap is numbers of a lane that a worker found missing when it counted the click after them.
type Gap struct {
	Lane Lane
	SeqRange
	Partition int
	Offset    int64     // of the record of the click after them
	Found     time.Time // to the second
}

// MaxGaps bounds the gaps that a store returns of a lane.
const MaxGaps = 1000

// SpoolReport describes the directory of a spool at the moment At: other processes may use the directory. Programs
// exchange it as JSON.
type SpoolReport struct {
	Dir     string      `json:"dir"`
	At      time.Time   `json:"at"`
	Dropped uint64      `json:"dropped"` // clicks that found no room and have no number, since the directory was created
	Lanes   []SpoolLane `json:"lanes"`
	Damaged []string    `json:"damaged,omitempty"` // files of which clicks could not be read
}

// SpoolLane describes a lane in a spool.
type SpoolLane struct {
	Lane     Lane       `json:"lane"`
	Recorded uint64     `json:"recorded"`          // the highest number of a click
	Pending  []SeqRange `json:"pending,omitempty"` // not acknowledged by the broker, ascending
	Refused  []SeqRange `json:"refused,omitempty"` // not accepted by the topic and set aside, ascending
}

// MarshalText implements encoding.TextMarshaler: the incarnation in hex, a slash and the number.
func (l Lane) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *Lane) UnmarshalText(text []byte) error {
	const digits = 2 * len(Incarnation{})
	*l = Lane{}
	if len(text) > digits && text[digits] == '/' {
		_, hexErr := hex.Decode(l.Incarnation[:], text[:digits])
		_, err := fmt.Sscanf(string(text[digits+1:]), "%d", &l.Number)
		if hexErr == nil && err == nil && l.String() == string(text) {
			return nil
		}
	}
	return Errorf(CodeInvalid, "%.60q is not the name of a lane", text)
}

// String returns the lane's name, such as 0123456789abcdef0123456789abcdef/3.
func (l Lane) String() string { return fmt.Sprintf("%s/%d", l.Incarnation, l.Number) }

// Compare orders lanes by incarnation and then by number.
func (l Lane) Compare(other Lane) int {
	return cmp.Or(bytes.Compare(l.Incarnation[:], other.Incarnation[:]), cmp.Compare(l.Number, other.Number))
}

// Validate returns CodeInvalid unless the numbers are possible.
func (l *SpoolLane) Validate() error {
	for _, ranges := range [][]SeqRange{l.Pending, l.Refused} {
		last := uint64(0)
		for _, r := range ranges {
			if r.First <= last || r.Last < r.First || r.Last > l.Recorded {
				return Errorf(CodeInvalid, "lane %s: %d to %d are not ascending numbers up to %d", l.Lane, r.First,
					r.Last, l.Recorded)
			}
			last = r.Last
		}
	}
	if l.Recorded > MaxSeq {
		return Errorf(CodeInvalid, "lane %s: %d is above %d", l.Lane, l.Recorded, uint64(MaxSeq))
	}
	return nil
}
