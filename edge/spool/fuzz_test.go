package spool_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"testing"

	"linkstream/edge/spool"
	"linkstream/schema"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

// FuzzSegment opens a spool with a segment file of any content. It checks that
//   - nothing crashes,
//   - no more clicks are read than fit into the file,
//   - the spool works afterwards.
//
// If checked is set, the header gets a valid checksum, so that the fuzzer reaches the code behind that check.
func FuzzSegment(f *testing.F) {
	cfg := config(f.TempDir(), 1)
	s, _ := open(f, cfg)
	appendClicks(f, s, 0, 1, 10)
	whole, err := os.ReadFile(files(f, cfg.Dir, ".segment")[0])
	testkit.Must(f, err)
	f.Add(whole, false)
	f.Add(whole[:200], false)
	for at := 0; at < headerLen+40; at += 4 {
		data := append([]byte(nil), whole...)
		data[at] ^= 0xff
		f.Add(data, true)
	}
	f.Fuzz(func(t *testing.T, data []byte, checked bool) {
		if checked && len(data) >= headerLen {
			check := crc32.MakeTable(crc32.Castagnoli)
			sum := crc32.Update(crc32.Checksum(data[8:28], check), check, data[32:40])
			binary.LittleEndian.PutUint32(data[48:], sum)
		}
		dir := memoryDir(t)
		folder := filepath.Join(dir, schema.Incarnation{}.String())
		testkit.Must(t, os.Mkdir(folder, 0o700))
		testkit.Must(t, os.WriteFile(filepath.Join(folder, "00-00000001.segment"), data, 0o600))
		for range 2 { // the second spool opens what the first one has left
			s, err := spool.Open(config(dir, 1), slog.New(slog.DiscardHandler))
			testkit.Must(t, err)
			readAny(t, s, len(data))
			appendClicks(t, s, 0, 1, 3)
			own := s.Lanes()[len(s.Lanes())-1]
			isRun(t, read(t, own), own.ID(), 1, 1, 3)
			testkit.Must(t, own.Acknowledge())
			testkit.Must(t, s.Close())
		}
	})
}

func readAny(t *testing.T, s *spool.Spool, size int) {
	t.Helper()
	for _, lane := range recovered(s) {
		var batch stream.Batch
		lane.Read(&batch, math.MaxInt)
		if n := batch.Len(); n > size/8 {
			t.Fatalf("%d clicks in %d bytes", n, size)
		}
		testkit.Must(t, lane.Acknowledge())
	}
}

// FuzzInspect reads a file of any content as a segment and as refused clicks, without mapping it. It checks that
//   - nothing crashes, and no more clicks are found than fit into the file,
//   - of a whole segment it finds what the process finds that opens the segment.
func FuzzInspect(f *testing.F) {
	cfg := config(f.TempDir(), 1)
	s, _ := open(f, cfg)
	appendClicks(f, s, 0, 1, 10)
	whole, err := os.ReadFile(files(f, cfg.Dir, ".segment")[0])
	testkit.Must(f, err)
	f.Add(whole)
	f.Add(whole[:200])
	f.Add(whole[:10])
	value := schema.AppendClick(nil, &schema.Click{Lane: s.Lanes()[0].ID(), Seq: 7, LinkID: 1})
	f.Add(append(binary.LittleEndian.AppendUint32(nil, uint32(len(value))), value...))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, firstSeq, clicks, err := spool.ScanSegment(data)
		if clicks > uint64(len(data)/8) || firstSeq == 0 && clicks > 0 {
			t.Fatalf("%d clicks from %d on in %d bytes", clicks, firstSeq, len(data))
		}
		refused := 0
		_ = spool.ScanRefused(bytes.NewReader(data), func(schema.Lane, uint64) { refused++ })
		if refused > len(data)/4 {
			t.Fatalf("%d refused clicks in %d bytes", refused, len(data))
		}
		if err != nil || firstSeq == 0 {
			return
		}
		dir := memoryDir(t)
		folder := filepath.Join(dir, schema.Incarnation{}.String())
		testkit.Must(t, os.Mkdir(folder, 0o700))
		testkit.Must(t, os.WriteFile(filepath.Join(folder, "00-00000001.segment"), data, 0o600))
		opened, err := spool.Open(config(dir, 1), slog.New(slog.DiscardHandler))
		testkit.Must(t, err)
		var batch stream.Batch
		acknowledged := binary.LittleEndian.Uint64(data[40:])
		for _, lane := range recovered(opened) {
			if acknowledged == 0 {
				testkit.Equal(t, "clicks", uint64(lane.Read(&batch, math.MaxInt)), clicks)
			}
		}
		testkit.Must(t, opened.Close())
	})
}

// FuzzDamage changes bytes behind the header of a whole segment. Four bytes of changes say where, how many bytes, and
// what is added to each of them; 0: they become zeros. It checks that the unchanged records are found, and nothing
// else, in their order and under their numbers.
func FuzzDamage(f *testing.F) {
	const clicks = 40
	cfg := config(f.TempDir(), 1)
	s, _ := open(f, cfg)
	for n := range clicks {
		c := click(int64(n + 1))
		c.Referrer = bytes.Repeat([]byte{'r'}, n)
		s.Append(0, c)
	}
	path := onlySegment(f, cfg.Dir)
	whole := fileContent(f, path)
	want := read(f, s.Lanes()[0])
	f.Add([]byte{})
	for n := range clicks {
		at := cap(whole) - cap(record(whole, n)) - headerLen
		for _, change := range [][2]byte{{1, 0}, {4, 0}, {8, 1}, {255, 0}} {
			f.Add([]byte{byte(at), byte(at >> 8), change[0], change[1]})
		}
	}
	f.Fuzz(func(t *testing.T, changes []byte) {
		data := bytes.Clone(whole)
		for ; len(changes) >= 4; changes = changes[4:] {
			at := headerLen + int(binary.LittleEndian.Uint16(changes))%(len(data)-headerLen)
			for i := range data[at:min(at+int(changes[2]), len(data))] {
				if changes[3] == 0 {
					data[at+i] = 0
				} else {
					data[at+i] += changes[3]
				}
			}
		}
		dir := memoryDir(t)
		folder := filepath.Join(dir, filepath.Base(filepath.Dir(path)))
		testkit.Must(t, os.Mkdir(folder, 0o700))
		testkit.Must(t, os.WriteFile(filepath.Join(folder, filepath.Base(path)), data, 0o600))
		later, err := spool.Open(config(dir, 1), slog.New(slog.DiscardHandler))
		testkit.Must(t, err)
		undamaged := []schema.Click{}
		for n, c := range want {
			r := record(whole, n)
			at := cap(whole) - cap(r)
			if bytes.Equal(r, data[at:at+len(r)]) {
				undamaged = append(undamaged, c)
			}
		}
		testkit.Equal(t, "clicks", read(t, recovered(later)[0]), undamaged)
		testkit.Must(t, later.Close())
	})
}
