package main

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"linkstream/schema/stream"
)

// Files in the broker's directory. Those with topics and settings are replaced by a rename, the others only grow. What is not
// copied is not needed, or harmful: see embedded.Dir.StartBroker, and the snapshots, which say where the log ended at the last clean stop.
const (
	brokerPartitions = "partitions"
	brokerLogSuffix  = ".dat" // record batches, named by the offset of the first record
	brokerIdxSuffix  = ".idx" // of the log with the same name; may be shorter than the log
	brokerBatchHead  = 12     // bytes of a record batch before those that its length counts
)

var (
	brokerNeeded   = []string{"meta.json", "topics.json"}
	brokerOptional = []string{"broker_configs.json", "groups.log"}
)

// copyBroker copies the broker's topics from one directory to another one, which it creates. The broker may run meanwhile, but
// nobody may delete records. Each batch that was acknowledged before the call is in the copy. The topic of changes stays
// empty: they tell caches what is stale, and a process begins with empty caches.
func copyBroker(from, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return fmt.Errorf("copy broker: %w", err)
	}
	for _, name := range slices.Concat(brokerNeeded, brokerOptional) {
		err := copyPart(filepath.Join(from, name), filepath.Join(to, name), wholeFile)
		if err != nil && !(errors.Is(err, fs.ErrNotExist) && slices.Contains(brokerOptional, name)) {
			return fmt.Errorf("copy broker: %w", err)
		}
	}
	partitions, err := os.ReadDir(filepath.Join(from, brokerPartitions))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("copy broker: %w", err)
	}
	for _, p := range partitions {
		if strings.HasPrefix(p.Name(), stream.DefaultConfig().Changes+"-") {
			continue
		}
		dir := filepath.Join(brokerPartitions, p.Name())
		if err := copyPartition(filepath.Join(from, dir), filepath.Join(to, dir)); err != nil {
			return fmt.Errorf("copy broker: %w", err)
		}
	}
	return nil
}

// copyPartition copies the log of a partition. Only the last of its files may grow meanwhile, so the copy is the beginning of
// the log.
func copyPartition(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	var bases []int64
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), brokerLogSuffix); ok {
			base, err := strconv.ParseInt(name, 10, 64)
			if err != nil {
				return fmt.Errorf("%q is no part of a log: %w", e.Name(), err)
			}
			bases = append(bases, base)
		}
	}
	slices.SortFunc(bases, cmp.Compare[int64])
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for _, base := range bases {
		name := strconv.FormatInt(base, 10)
		err := copyPart(filepath.Join(from, name+brokerLogSuffix), filepath.Join(to, name+brokerLogSuffix), wholeBatches)
		if err != nil {
			return err
		}
		err = copyPart(filepath.Join(from, name+brokerIdxSuffix), filepath.Join(to, name+brokerIdxSuffix), wholeFile)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// copyPart copies the first bytes of a file to a new one. size returns their number.
func copyPart(from, to string, size func(*os.File) (int64, error)) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	n, err := size(in)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.NewSectionReader(in, 0, n))
	return errors.Join(err, out.Close())
}

func wholeFile(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// wholeBatches returns the number of bytes up to the end of the last record batch that the file has as a whole. The broker may
// be writing one.
func wholeBatches(f *os.File) (int64, error) {
	size, err := wholeFile(f)
	if err != nil {
		return 0, err
	}
	head := make([]byte, brokerBatchHead)
	for end := int64(0); ; {
		if _, err := f.ReadAt(head, end); errors.Is(err, io.EOF) {
			return end, nil
		} else if err != nil {
			return 0, err
		}
		next := end + brokerBatchHead + int64(binary.BigEndian.Uint32(head[8:]))
		if next > size {
			return end, nil
		}
		end = next
	}
}
