package spool

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"linkstream/schema"
)

// Inspect reads the directory of a spool, also while another process uses it. It changes nothing and takes no lock.
//
// A click that was in the spool when Inspect began is pending in the report, or was acknowledged by then. So a caller
// who then reads the topic, and then the click store, finds each recorded click at least once.
func Inspect(dir string) (schema.SpoolReport, error) {
	report := schema.SpoolReport{Dir: dir, At: time.Now().UTC(), Lanes: []schema.SpoolLane{}}
	if _, err := os.Stat(filepath.Join(dir, lockName)); err != nil {
		return report, fmt.Errorf("inspect spool: %q is not the directory of a spool: %w", dir, err)
	}
	i := inspection{dir: dir, lanes: make(map[schema.Lane]*inspectedLane), damaged: make(map[string]bool)}
	if err := i.readLanes(); err != nil {
		return report, fmt.Errorf("inspect spool: %w", err)
	}
	// After the segments: a lane that ends is in the file before its segments are removed.
	ends, err := os.ReadFile(filepath.Join(dir, laneEndsName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return report, fmt.Errorf("inspect spool: %w", err)
	}
	decodeLaneEnds(ends, func(lane schema.Lane, seq uint64) { i.lane(lane).noted = max(i.lane(lane).noted, seq) })
	if report.Dropped, err = readDropCount(filepath.Join(dir, dropCountName)); err != nil {
		return report, fmt.Errorf("inspect spool: %w", err)
	}
	for id, lane := range i.lanes {
		report.Lanes = append(report.Lanes, lane.report(id))
	}
	slices.SortFunc(report.Lanes, func(a, b schema.SpoolLane) int { return a.Lane.Compare(b.Lane) })
	report.Damaged = slices.Sorted(maps.Keys(i.damaged))
	return report, nil
}

// inspection collects what the files of a spool say.
type inspection struct {
	dir     string
	lanes   map[schema.Lane]*inspectedLane
	damaged map[string]bool // paths
}

type inspectedLane struct {
	segments []inspectedSegment // each once, in any order
	refused  map[uint64]bool
	recorded uint64 // the last seq
	noted    uint64 // the last seq in the file of lane ends
}

// inspectedSegment has the clicks from firstSeq to end-1, except damaged ones.
type inspectedSegment struct {
	firstSeq, end, acknowledged uint64
	clicks                      []schema.SeqRange
}

func (i *inspection) lane(id schema.Lane) *inspectedLane {
	if i.lanes[id] == nil {
		i.lanes[id] = &inspectedLane{refused: make(map[uint64]bool)}
	}
	return i.lanes[id]
}

// readLanes reads all segments. While it does so, segments become active and new ones are created. So it first looks
// which are active: segments before them are complete when they are read, or acknowledged. Newer segments are left out.
func (i *inspection) readLanes() error {
	newest := make(map[schema.Lane]uint64)
	if err := i.readFolders(func(dir string) error { return lookAt(dir, newest) }); err != nil {
		return err
	}
	if err := i.readFolders(i.readFolder); err != nil {
		return err
	}
	for id, l := range i.lanes {
		l.segments = slices.DeleteFunc(l.segments, func(s inspectedSegment) bool { return s.firstSeq > newest[id] })
		for _, s := range l.segments {
			l.recorded = max(l.recorded, s.end-1)
		}
	}
	return nil
}

// lookAt adds the first seq of the active segment of each lane in a folder.
func lookAt(dir string, newest map[schema.Lane]uint64) error {
	entries, err := readDir(dir)
	if err != nil {
		return err
	}
	header := make([]byte, headerLen)
	for _, e := range entries {
		if !e.Type().IsRegular() || filepath.Ext(e.Name()) != ".segment" {
			continue
		}
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) { // shipped meanwhile
			continue
		}
		if err != nil {
			return err
		}
		_, err = io.ReadFull(f, header)
		f.Close()
		if err := atEnd(err, nil); err != nil {
			return err
		}
		if err == nil && headerValid(header) {
			id, s := decodeHeader(header)
			newest[id] = max(newest[id], s.firstSeq)
		}
	}
	return nil
}

// readFolders calls read for the folder of each incarnation.
func (i *inspection) readFolders(read func(dir string) error) error {
	folders, err := os.ReadDir(i.dir)
	if err != nil {
		return err
	}
	for _, f := range folders {
		if isIncarnation(f.Name()) {
			if err := read(filepath.Join(i.dir, f.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// readFolder reads an incarnation's files, refused clicks last: a refused click is kept before it is acknowledged.
func (i *inspection) readFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) { // shipped meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	for _, suffix := range []string{".segment", refusedSuffix, damagedSuffix} {
		for _, e := range entries {
			if path := filepath.Join(dir, e.Name()); e.Type().IsRegular() && strings.HasSuffix(path, suffix) {
				if err := i.readFile(path, suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
		}
	}
	return nil
}

func (i *inspection) readFile(path, suffix string) error {
	var err error
	switch suffix {
	case damagedSuffix:
		err = errDamagedHeader
	case refusedSuffix:
		err = i.readRefused(path)
	default:
		// The process that uses the file may be writing what is read.
		for range inspectAttempts {
			if err = i.readSegment(path); err == nil || !isDamage(err) {
				return err
			}
			time.Sleep(inspectPause)
		}
	}
	if isDamage(err) {
		i.damaged[path] = true
		return nil
	}
	return err
}

const (
	inspectAttempts = 3
	inspectPause    = 5 * time.Millisecond
)

func isDamage(err error) bool {
	return errors.Is(err, errDamagedHeader) || errors.Is(err, errDamagedRecord)
}

// readSegment adds a segment to its lane.
func (i *inspection) readSegment(path string) error {
	data, err := readFile(path)
	if err != nil {
		return err
	}
	id, s, err := scanSegment(data)
	if s.firstSeq > 0 {
		l := i.lane(id)
		// of another attempt
		l.segments = slices.DeleteFunc(l.segments, func(o inspectedSegment) bool { return o.firstSeq == s.firstSeq })
		l.segments = append(l.segments, s)
	}
	return err
}

// readFile reads a file as a segment can be.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFileLen))
}

// scanSegment looks at the content of a segment's file, which is not mapped: it may become shorter at any time. It
// returns the whole records, and firstSeq 0 for a spare or if the header is damaged.
func scanSegment(data []byte) (id schema.Lane, found inspectedSegment, err error) {
	s := &segment{data: data}
	if !headerValid(data) {
		if len(data) > 0 && s.used() {
			err = errDamagedHeader
		}
		return id, found, err
	}
	if id, found = decodeHeader(data); found.firstSeq == 0 || found.firstSeq > schema.MaxSeq/2 {
		return id, inspectedSegment{}, errDamagedHeader
	}
	s.firstSeq, s.seed = found.firstSeq, headerChecksum(data)
	end := start
	for at, next := range s.all() {
		if at.pos > end.pos {
			err = errDamagedRecord
		}
		seq := s.firstSeq + uint64(at.index)
		found.clicks, found.end, end = appendRange(found.clicks, seq, seq), seq+1, next
	}
	if _, damaged := s.rest(end); damaged {
		err = errDamagedRecord
	}
	return id, found, err
}

// decodeHeader decodes a segment's header.
func decodeHeader(header []byte) (id schema.Lane, s inspectedSegment) {
	id.Incarnation = schema.Incarnation(header[offIncarnation:])
	id.Number = binary.LittleEndian.Uint32(header[offLane:])
	first := binary.LittleEndian.Uint64(header[offFirstSeq:])
	return id, inspectedSegment{firstSeq: first, end: first,
		acknowledged: binary.LittleEndian.Uint64(header[offAcknowledged:])}
}

// atEnd returns end if err says that a file has ended, else err.
func atEnd(err, end error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return end
	}
	return err
}

// readRefused adds the clicks of a file that keepRefused writes.
func (i *inspection) readRefused(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return scanRefused(bufio.NewReader(f), func(lane schema.Lane, seq uint64) {
		i.lane(lane).refused[seq] = true
	})
}

// scanRefused calls each for the clicks in a file that keepRefused writes. It fails with errDamagedRecord at anything
// else.
func scanRefused(r io.Reader, each func(schema.Lane, uint64)) error {
	value := make([]byte, schema.MaxClickLen)
	for {
		var length [4]byte
		if _, err := io.ReadFull(r, length[:]); err != nil {
			return atEnd(err, nil)
		}
		n := int(binary.LittleEndian.Uint32(length[:]))
		if n > schema.MaxClickLen {
			return errDamagedRecord
		}
		if _, err := io.ReadFull(r, value[:n]); err != nil {
			return atEnd(err, errDamagedRecord)
		}
		var click schema.Click
		if schema.DecodeClick(value[:n], &click) != nil || click.Seq > schema.MaxSeq {
			return errDamagedRecord
		}
		each(click.Lane, click.Seq)
	}
}

// inOrder returns the lane's segments by their clicks, and the last seq acknowledged: clicks are acknowledged in order.
func (l *inspectedLane) inOrder() (segments []inspectedSegment, acknowledged uint64) {
	slices.SortFunc(l.segments, func(a, b inspectedSegment) int { return cmp.Compare(a.firstSeq, b.firstSeq) })
	for _, s := range l.segments {
		acknowledged = max(acknowledged, s.acknowledged)
	}
	return l.segments, acknowledged
}

func (l *inspectedLane) report(id schema.Lane) schema.SpoolLane {
	report := schema.SpoolLane{Lane: id, Recorded: max(l.recorded, l.noted)}
	segments, acknowledged := l.inOrder()
	for _, s := range segments {
		for _, r := range s.clicks {
			first, last := max(r.First, acknowledged+1, lastOf(report.Pending)+1), min(r.Last, l.recorded)
			if first <= last {
				report.Pending = appendRange(report.Pending, first, last)
			}
		}
	}
	for _, seq := range slices.Sorted(maps.Keys(l.refused)) {
		report.Recorded = max(report.Recorded, seq)
		report.Refused = appendRange(report.Refused, seq, seq)
	}
	return report
}

// appendRange appends numbers that are above all numbers in ranges.
func appendRange(ranges []schema.SeqRange, first, last uint64) []schema.SeqRange {
	if lastOf(ranges) == first-1 && len(ranges) > 0 {
		ranges[len(ranges)-1].Last = last
		return ranges
	}
	return append(ranges, schema.SeqRange{First: first, Last: last})
}

func lastOf(ranges []schema.SeqRange) uint64 {
	if len(ranges) == 0 {
		return 0
	}
	return ranges[len(ranges)-1].Last
}
