package spool_test

import (
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
