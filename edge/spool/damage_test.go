package spool_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"slices"
	"testing"

	"linkstream/edge/spool"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// The segment format, repeated here so that a change of the format fails the tests: later versions open old spools.
const (
	headerLen   = 64
	atFirstSeq  = 32
	recordAlign = 8
)

// leftClicks is the number of clicks in the spool that left returns: on links 1, 2, 3, …, each with the seq of its
// link.
const leftClicks = 600

// left returns the spool that a killed process leaves, its lane, and the lane's segments in order.
func left(t *testing.T, segmentBytes int) (cfg spool.Config, id schema.Lane, segments []string) {
	t.Helper()
	cfg = config(t.TempDir(), 1)
	cfg.SegmentBytes = segmentBytes
	s, closeSpool := open(t, cfg)
	appendClicks(t, s, 0, 1, leftClicks)
	killed := kill(t, cfg)
	closeSpool()
	return killed, s.Lanes()[0].ID(), segmentsIn(t, killed.Dir)
}

// segmentsIn returns the segments in dir that are not spares, ordered by first seq.
func segmentsIn(tb testing.TB, dir string) []string {
	tb.Helper()
	segments := slices.DeleteFunc(files(tb, dir, ".segment"), func(path string) bool { return firstSeq(tb, path) == 0 })
	slices.SortFunc(segments, func(a, b string) int { return cmp.Compare(firstSeq(tb, a), firstSeq(tb, b)) })
	return segments
}

// damage changes a file in place.
func damage(tb testing.TB, path string, change func(data []byte)) {
	tb.Helper()
	data, err := os.ReadFile(path)
	testkit.Must(tb, err)
	change(data)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	testkit.Must(tb, err)
	_, err = f.Write(data)
	testkit.Must(tb, err)
	testkit.Must(tb, f.Close())
}

// firstSeq returns the seq of a segment's first record, or 0 for a spare, which may be created or removed concurrently.
func firstSeq(tb testing.TB, path string) uint64 {
	tb.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || len(data) < headerLen {
		return 0
	}
	testkit.Must(tb, err)
	return binary.LittleEndian.Uint64(data[atFirstSeq:])
}

// record returns record n of a segment, from its length to its last byte.
func record(data []byte, n int) []byte {
	for at := headerLen; ; n-- {
		length := 8 + int(binary.LittleEndian.Uint32(data[at:])&0xfff) - 1
		if n == 0 {
			return data[at : at+length]
		}
		at += (length + recordAlign - 1) / recordAlign * recordAlign
	}
}

// withoutRun requires the clicks of a lane on links 1 to leftClicks, except links first to last.
func withoutRun(tb testing.TB, clicks []schema.Click, id schema.Lane, first, last int64) {
	tb.Helper()
	testkit.Equal(tb, "clicks", int64(len(clicks)), leftClicks-(last-first+1))
	isRun(tb, clicks[:first-1], id, 1, 1, first-1)
	isRun(tb, clicks[first-1:], id, uint64(last)+1, last+1, leftClicks)
}

func TestDamagedRecord(t *testing.T) {
	t.Run("it alone is skipped and reported and a copy of its segment is kept", func(t *testing.T) {
		for name, change := range map[string]func(record []byte){
			"body":         func(r []byte) { r[len(r)-1] ^= 1 },
			"check":        func(r []byte) { r[4] ^= 0x80 },
			"length":       func(r []byte) { r[0]++ },
			"huge":         func(r []byte) { r[1] ^= 0xf },
			"index":        func(r []byte) { r[2] ^= 1 },
			"no length":    func(r []byte) { clear(r[:4]) },
			"zeros":        func(r []byte) { clear(r[4:]) },
			"all is zeros": func(r []byte) { clear(r) },
		} {
			cfg, id, segments := left(t, smallest)
			damage(t, segments[1], func(data []byte) { change(record(data, 5)) })
			damaged, err := os.ReadFile(segments[1])
			testkit.Must(t, err)
			s, log, closeSpool := openLogged(t, cfg)
			lost := int64(firstSeq(t, segments[1])) + 5
			withoutRun(t, read(t, recovered(s)[0]), id, lost, lost)
			testkit.Equal(t, "reported damage of "+name, log.Contains(fmt.Sprintf("first=%d last=%d", lost, lost)), true)
			testkit.Equal(t, "damaged segments", s.Damaged(), 1)
			testkit.Must(t, recovered(s)[0].Acknowledge())
			closeSpool()
			copies := files(t, cfg.Dir, ".damaged")
			testkit.Equal(t, "copies", copies, []string{segments[1] + ".damaged"})
			kept, err := os.ReadFile(copies[0])
			testkit.Must(t, err)
			testkit.Equal(t, "the copy has the records", bytes.Equal(kept[headerLen:], damaged[headerLen:]), true)
		}
	})
	t.Run("the last record of a segment that has a successor is noticed", func(t *testing.T) {
		cfg, id, segments := left(t, smallest)
		lost := int64(firstSeq(t, segments[1])) - 1
		damage(t, segments[0], func(data []byte) { clear(record(data, int(lost)-1)[:4]) })
		s, log, _ := openLogged(t, cfg)
		withoutRun(t, read(t, recovered(s)[0]), id, lost, lost)
		testkit.Equal(t, "reported", log.Contains(fmt.Sprintf("first=%d last=%d", lost, lost)), true)
		testkit.Equal(t, "damaged segments", s.Damaged(), 1)
	})
	t.Run("the clicks of a segment that is gone are not taken for damaged", func(t *testing.T) {
		cfg, _, segments := left(t, smallest)
		first := firstSeq(t, segments[2])
		testkit.Must(t, os.Remove(segments[1]))
		damage(t, segments[2], func(data []byte) { record(data, 0)[8] ^= 1 })
		s, log, _ := openLogged(t, cfg)
		read(t, recovered(s)[0])
		testkit.Equal(t, "reported", log.Contains(fmt.Sprintf("first=%d last=%d", first, first)), true)
	})
	t.Run("bytes of a visitor do not pass for a record", func(t *testing.T) {
		cfg := config(t.TempDir(), 1)
		s, closeSpool := open(t, cfg)
		appendClicks(t, s, 0, 1, 3)
		for n := range uint32(8) { // at each alignment: a click that would be the next one
			forged, body := click(4), schema.AppendClickBody(nil, click(99))
			forged.Referrer = binary.LittleEndian.AppendUint32(make([]byte, n), (3+n+1)<<12|uint32(len(body)+1))
			forged.Referrer = binary.LittleEndian.AppendUint32(forged.Referrer,
				crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
			forged.Referrer = append(forged.Referrer, body...)
			s.Append(0, forged)
		}
		appendClicks(t, s, 0, 12, 20)
		killed := kill(t, cfg)
		closeSpool()
		damage(t, onlySegment(t, killed.Dir), func(data []byte) {
			for n := 3; n < 11; n++ {
				record(data, n)[0] ^= 1
			}
		})
		s, _ = open(t, killed)
		clicks := read(t, recovered(s)[0])
		id := recovered(s)[0].ID()
		isRun(t, clicks[:3], id, 1, 1, 3)
		isRun(t, clicks[3:], id, 12, 12, 20)
	})
	t.Run("damage at the end of a lane does not keep its segments", func(t *testing.T) {
		cfg, id, segments := left(t, smallest)
		damage(t, segments[len(segments)-1], func(data []byte) {
			clear(record(data, leftClicks-int(firstSeq(t, segments[len(segments)-1])))[4:])
		})
		s, log, closeSpool := openLogged(t, cfg)
		isRun(t, read(t, recovered(s)[0]), id, 1, 1, leftClicks-1)
		testkit.Equal(t, "reported", log.Contains("are damaged"), true)
		testkit.Must(t, recovered(s)[0].Acknowledge())
		testkit.Equal(t, "pending", s.Pending(), 0)
		closeSpool()
		testkit.Equal(t, "segments", len(files(t, cfg.Dir, ".segment")), 0)
		testkit.Equal(t, "copies", len(files(t, cfg.Dir, ".damaged")), 1)
	})
	t.Run("a lane is kept until its damage is reported", func(t *testing.T) {
		cfg := config(t.TempDir(), 1)
		s, closeFirst := open(t, cfg)
		appendClicks(t, s, 0, 1, 1)
		cfg = kill(t, cfg)
		closeFirst()
		damage(t, onlySegment(t, cfg.Dir), func(data []byte) { record(data, 0)[8] ^= 1 })
		_, _, closeSpool := openLogged(t, cfg)
		closeSpool()
		s, log, _ := openLogged(t, cfg)
		testkit.Equal(t, "recovered lanes", len(recovered(s)), 1)
		testkit.Equal(t, "clicks", len(read(t, recovered(s)[0])), 0)
		testkit.Equal(t, "reported", log.Contains("are damaged"), true)
	})
	t.Run("clicks of the running process keep their seqs", func(t *testing.T) {
		dir := t.TempDir()
		s, log, closeSpool := openLogged(t, config(dir, 1))
		lane := s.Lanes()[0]
		appendClicks(t, s, 0, 1, 10)
		damage(t, segmentsIn(t, dir)[0], func(data []byte) { record(data, 6)[8] ^= 1 })
		clicks := read(t, lane)
		isRun(t, clicks[:6], lane.ID(), 1, 1, 6)
		isRun(t, clicks[6:], lane.ID(), 8, 8, 10)
		testkit.Equal(t, "reported", log.Contains("first=7 last=7"), true)
		appendClicks(t, s, 0, 11, 300)
		isRun(t, read(t, lane), lane.ID(), 11, 11, 300)
		testkit.Must(t, lane.Acknowledge())
		testkit.Equal(t, "pending", s.Pending(), 0)
		closeSpool()
		testkit.Equal(t, "copies", len(files(t, dir, ".damaged")), 1)
	})
	t.Run("copies do not take the room of clicks", func(t *testing.T) {
		cfg, _, segments := left(t, smallest)
		cfg.MaxBytes = int64(len(segments)+4) * smallest
		for _, path := range segments {
			damage(t, path, func(data []byte) { record(data, 1)[8] ^= 1 })
		}
		s, closeSpool := open(t, cfg)
		read(t, recovered(s)[0])
		testkit.Must(t, recovered(s)[0].Acknowledge())
		closeSpool()
		if n := len(files(t, cfg.Dir, ".damaged")); int64(n)*smallest > cfg.MaxBytes/2 || n == 0 {
			t.Errorf("%d copies in a spool of %d bytes", n, cfg.MaxBytes)
		}
	})
}

func fileContent(tb testing.TB, path string) []byte {
	tb.Helper()
	data, err := os.ReadFile(path)
	testkit.Must(tb, err)
	return data
}

func TestDamagedHeader(t *testing.T) {
	for name, change := range map[string]func(data []byte){
		"magic":                func(data []byte) { data[0] ^= 1 },
		"incarnation":          func(data []byte) { data[20] ^= 1 },
		"lane":                 func(data []byte) { data[24] ^= 1 },
		"first seq":            func(data []byte) { data[atFirstSeq] ^= 1 },
		"checksum":             func(data []byte) { data[48] ^= 1 },
		"all of the header":    func(data []byte) { clear(data[:headerLen]) },
		"the first page":       func(data []byte) { clear(data[:4096]) },
		"no magic but records": func(data []byte) { clear(data[:8]) },
	} {
		t.Run("the segment is set aside and reported: "+name, func(t *testing.T) {
			cfg, id, segments := left(t, 2*smallest)
			second, third := firstSeq(t, segments[1]), firstSeq(t, segments[2])
			damage(t, segments[1], change)
			s, log, closeSpool := openLogged(t, cfg)
			testkit.Equal(t, "reported", log.Contains("setting it aside") && log.Contains(segments[1]+".damaged"), true)
			testkit.Equal(t, "segments set aside", len(files(t, cfg.Dir, ".damaged")), 1)
			testkit.Equal(t, "damaged segments", s.Damaged(), 1)
			wantUsed(t, s, cfg.Dir)
			clicks := read(t, recovered(s)[0])
			isRun(t, clicks[:second-1], id, 1, 1, int64(second)-1)
			isRun(t, clicks[second-1:], id, third, int64(third), leftClicks)
			testkit.Must(t, recovered(s)[0].Acknowledge())
			closeSpool()
			s, closeSpool = open(t, cfg)
			wantUsed(t, s, cfg.Dir)
			closeSpool()
			testkit.Equal(t, "segments set aside, later", len(files(t, cfg.Dir, ".damaged")), 1)
		})
	}
}

func TestFileCutShort(t *testing.T) {
	for _, size := range []int64{0, 10, headerLen - 1, headerLen, headerLen + 3, headerLen + 100, smallest - 1} {
		cfg, id, segments := left(t, smallest)
		testkit.Must(t, os.Truncate(segments[0], size))
		s, closeSpool := open(t, cfg)
		clicks := read(t, recovered(s)[0])
		second := firstSeq(t, segments[1])
		whole := len(clicks) - (leftClicks - int(second) + 1)
		isRun(t, clicks[:whole], id, 1, 1, int64(whole))
		isRun(t, clicks[whole:], id, second, int64(second), leftClicks)
		closeSpool()
	}
}
