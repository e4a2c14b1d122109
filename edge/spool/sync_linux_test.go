package spool_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

// dirty returns how many KiB of a mapped file are not on the disk. The file must not be in memory, as with tmpfs.
func dirty(tb testing.TB, path string) (kib int) {
	tb.Helper()
	maps, err := os.Open("/proc/self/smaps")
	testkit.Must(tb, err)
	defer maps.Close()
	found := false
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		switch {
		case strings.Contains(name, "-") && strings.Contains(lines.Text(), " "): // the first line of a mapping
			if found {
				return kib
			}
			found = strings.HasSuffix(lines.Text(), path)
		case found && (name == "Shared_Dirty" || name == "Private_Dirty"):
			n, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(value, "kB")))
			testkit.Must(tb, err)
			kib += n
		}
	}
	if !found {
		tb.Fatalf("%s is not mapped", path)
	}
	return kib
}

func TestClicksReachTheDisk(t *testing.T) {
	cfg := config(t.TempDir(), 1)
	cfg.Sync = time.Hour
	s, topic, shipper := shipping(t, cfg)
	topic.produce = func(context.Context, attempt) error { return errAway }
	appendClicks(t, s, 0, 1, 10)
	path := onlySegment(t, cfg.Dir)
	if dirty(t, path) == 0 {
		t.Fatal("new clicks are on the disk at once: this test cannot fail")
	}
	testkit.Must(t, s.Sync())
	testkit.Equal(t, "KiB that are not synced", dirty(t, path), 0)

	_, err := shipper.Ship(t.Context(), s.Lanes()[0], new(stream.Batch))
	testkit.Equal(t, "error", errors.Is(err, errAway), true)
	_, bound := s.Lanes()[0].Partition()
	testkit.Equal(t, "bound", bound, true)
	testkit.Equal(t, "KiB of the binding that are not synced", dirty(t, path), 0)

	left := kill(t, cfg)
	path = onlySegment(t, left.Dir)
	open(t, left)
	testkit.Equal(t, "KiB that a killed process left and are not synced", dirty(t, path), 0)

	cfg = config(t.TempDir(), 1)
	cfg.Sync = 10 * time.Millisecond
	s, _ = open(t, cfg)
	appendClicks(t, s, 0, 1, 10)
	path = onlySegment(t, cfg.Dir)
	testkit.Eventually(t, "clicks are synced after a while", func() bool { return dirty(t, path) == 0 })
}
