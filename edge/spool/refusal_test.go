package spool_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"linkstream/edge/spool"
	"linkstream/schema"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

// shipUntil ships a lane until ok returns true.
func shipUntil(t *testing.T, shipper *spool.Shipper, lane *spool.Lane, ok func() bool) {
	t.Helper()
	for batch, n := new(stream.Batch), 0; !ok(); n++ {
		if n == 1000 {
			t.Fatal("not after 1000 attempts")
		}
		_, _ = shipper.Ship(t.Context(), lane, batch)
	}
}

func TestBatchesThatTheTopicDoesNotAccept(t *testing.T) {
	// limited returns a topic that accepts batches of at most max bytes, and whose first answer to any is lost.
	limited := func(topic *topic, max int) {
		calls := 0
		topic.produce = func(_ context.Context, a attempt) error {
			size := 0
			for _, v := range a.values {
				size += len(v)
			}
			if calls++; calls%2 == 1 {
				return errAway
			}
			if size > max {
				return stream.ErrRefused
			}
			return nil
		}
	}
	t.Run("they are sent in parts", func(t *testing.T) {
		s, topic, shipper := shipping(t, config(t.TempDir(), 1))
		limited(topic, 1000)
		lane := s.Lanes()[0]
		for _, last := range []int64{500, 1000} {
			appendClicks(t, s, 0, last-499, last)
			shipUntil(t, shipper, lane, func() bool { return s.Pending() == 0 })
			isRun(t, topic.counted(t)[lane.ID()], lane.ID(), 1, 1, last)
		}
		testkit.Equal(t, "refused", s.Refused(), 0)
	})
	t.Run("damage among them is reported once", func(t *testing.T) {
		cfg, id, segments := left(t, smallest)
		damage(t, segments[0], func(data []byte) { record(data, 4)[8] ^= 1 })
		s, log, _ := openLogged(t, cfg)
		topic := &topic{partitions: 4}
		limited(topic, 1000)
		shipUntil(t, spool.NewShipper(s, topic, log.Logger()), recovered(s)[0],
			func() bool { return recovered(s)[0].Acknowledged() == leftClicks })
		withoutRun(t, topic.counted(t)[id], id, 5, 5)
		testkit.Equal(t, "reports of damage", strings.Count(log.String(), "are damaged"), 1)
	})
	t.Run("a click that cannot be set aside stays and takes no room", func(t *testing.T) {
		cfg := config(t.TempDir(), 1)
		cfg.MaxBytes, cfg.Sync = 4*smallest, time.Hour
		s, topic, shipper := shipping(t, cfg)
		lane, batch := s.Lanes()[0], new(stream.Batch)
		topic.produce = func(context.Context, attempt) error { return stream.ErrRefused }
		appendClicks(t, s, 0, 1, 1)
		testkit.Eventually(t, "there is a spare", lane.HasSpare)
		fault := errors.New("input/output error")
		s.OnFsync(func(string) error { return fault })
		for range 3 {
			_, err := shipper.Ship(t.Context(), lane, batch)
			testkit.Equal(t, "the error is the disk's", errors.Is(err, fault), true)
		}
		wantUsed(t, s, cfg.Dir)
		fault = nil
		for s.Append(0, click(2)) { // until the spool is full
		}
		wantUsed(t, s, cfg.Dir)
		_, err := shipper.Ship(t.Context(), lane, batch)
		if err == nil || !strings.Contains(err.Error(), "the spool is full") {
			t.Errorf("error %v", err)
		}
		wantUsed(t, s, cfg.Dir)
		testkit.Equal(t, "acknowledged", lane.Acknowledged(), 0)
		testkit.Equal(t, "refused", s.Refused(), 0)
	})
	t.Run("a click that is too large by itself is set aside", func(t *testing.T) {
		cfg := config(t.TempDir(), 1)
		s, log, closeSpool := openLogged(t, cfg)
		topic := &topic{partitions: 4}
		shipper := spool.NewShipper(s, topic, log.Logger())
		limited(topic, 1000)
		large := click(101)
		large.Referrer = make([]byte, 512)
		large.UserAgent = make([]byte, 512)
		appendClicks(t, s, 0, 1, 100)
		s.Append(0, large)
		appendClicks(t, s, 0, 102, 200)
		lane := s.Lanes()[0]
		shipUntil(t, shipper, lane, func() bool { return s.Pending() == 0 })
		clicks := topic.counted(t)[lane.ID()]
		isRun(t, clicks[:100], lane.ID(), 1, 1, 100)
		isRun(t, clicks[100:], lane.ID(), 102, 102, 200)
		testkit.Equal(t, "refused", s.Refused(), 1)
		testkit.Equal(t, "logged", log.Contains("level=ERROR msg=\"the topic does not accept a click"), true)
		want := schema.SpoolLane{Lane: lane.ID(), Recorded: 200, Refused: numbers(101, 101)}
		wantLanes(t, inspect(t, cfg.Dir), want)
		closeSpool()
		wantLanes(t, inspect(t, cfg.Dir), want)
		paths, err := spool.UnshippableFiles(cfg.Dir)
		testkit.Must(t, err)
		path := filepath.Join(cfg.Dir, lane.ID().Incarnation.String(), "00.refused")
		testkit.Equal(t, "files", paths, []string{path})
		data, err := os.ReadFile(path)
		testkit.Must(t, err)
		var batch stream.Batch
		batch.Append(nil, data[4:])
		isRun(t, decode(t, &batch), lane.ID(), 101, 101, 101)
	})
	t.Run("batches are large again afterwards", func(t *testing.T) {
		s, topic, shipper := shipping(t, config(t.TempDir(), 1))
		limited(topic, 1)
		appendClicks(t, s, 0, 1, 1)
		shipUntil(t, shipper, s.Lanes()[0], func() bool { return s.Refused() == 1 })
		topic.produce = nil
		appendClicks(t, s, 0, 2, 500)
		n, err := shipper.Ship(t.Context(), s.Lanes()[0], new(stream.Batch))
		testkit.Must(t, err)
		testkit.Equal(t, "clicks in a batch", n, 499)
	})
}

func TestLostPartition(t *testing.T) {
	uptime := time.Duration(0)
	cfg := config(t.TempDir(), 1)
	cfg.Uptime = func() time.Duration { return uptime }
	s, topic, shipper := shipping(t, cfg)
	topic.produce = func(_ context.Context, a attempt) error {
		if a.partition >= topic.partitions {
			return stream.ErrNoPartition
		}
		return nil
	}
	lane, batch := s.Lanes()[0], new(stream.Batch)
	ship := func() error {
		_, err := shipper.Ship(t.Context(), lane, batch)
		return err
	}
	isLost := func() {
		t.Helper()
		if err := ship(); !errors.Is(err, stream.ErrNoPartition) {
			t.Fatalf("error %v", err)
		}
	}
	// A partition above the first one, so that there may be fewer.
	topic.partitions = 1 << 20
	appendClicks(t, s, 0, 1, 10)
	testkit.Must(t, ship())
	bound, _ := lane.Partition()
	topic.partitions = bound
	appendClicks(t, s, 0, 11, 20)

	isLost()
	uptime += 50 * time.Second
	isLost()
	topic.partitions = bound + 1 // it was only the metadata
	testkit.Must(t, ship())
	topic.partitions = 3
	appendClicks(t, s, 0, 21, 30)
	for range 4 {
		isLost()
		uptime += 29 * time.Second
	}
	testkit.Must(t, ship())
	to, _ := lane.Partition()
	testkit.Equal(t, "the lane has a partition that exists", to < 3, true)
	appendClicks(t, s, 0, 31, 40)
	testkit.Must(t, ship())
	isRun(t, topic.counted(t)[lane.ID()], lane.ID(), 1, 1, 40)

	left := kill(t, cfg)
	later, topicLater, shipperLater := shipping(t, left)
	topicLater.partitions = 5
	for _, l := range recovered(later) {
		p, _ := l.Partition()
		testkit.Equal(t, "partition after a restart", p, to)
		_, err := shipperLater.Ship(t.Context(), l, new(stream.Batch))
		testkit.Must(t, err)
	}
}

// A partition that was away for a moment, and one that is lost right after it was chosen, have their minute, too. In
// this minute workers finish the records that they have fetched.
func TestPartitionsThatAreLostAgain(t *testing.T) {
	uptime, away := time.Duration(0), false
	cfg := config(t.TempDir(), 1)
	cfg.Uptime = func() time.Duration { return uptime }
	s, topic, shipper := shipping(t, cfg)
	topic.partitions = 1 << 20
	topic.produce = func(context.Context, attempt) error {
		if away {
			return stream.ErrNoPartition
		}
		return nil
	}
	lane, batch := s.Lanes()[0], new(stream.Batch)
	partition := func() int { p, _ := lane.Partition(); return p }
	appendClicks(t, s, 0, 1, 10)
	_, err := shipper.Ship(t.Context(), lane, batch)
	testkit.Must(t, err)
	appendClicks(t, s, 0, 11, 20)
	away = true
	first := partition()
	isLost := func(after time.Duration, partitions int) {
		t.Helper()
		uptime += after
		topic.partitions = partitions
		if _, err := shipper.Ship(t.Context(), lane, batch); !errors.Is(err, stream.ErrNoPartition) {
			t.Fatalf("error %v", err)
		}
	}
	isLost(0, first) // the last one is gone
	isLost(40*time.Second, first+1)
	isLost(0, first)
	isLost(50*time.Second, first)
	testkit.Equal(t, "partition that was back", partition(), first)
	isLost(11*time.Second, first)
	second := partition()
	if second >= first {
		t.Fatalf("partition %d, of %d", second, first)
	}
	isLost(0, 1)
	isLost(59*time.Second, 1)
	testkit.Equal(t, "partition that is lost again", partition(), second)
	isLost(2*time.Second, 1)
	testkit.Equal(t, "the only partition", partition(), 0)
	away = false
	_, err = shipper.Ship(t.Context(), lane, batch)
	testkit.Must(t, err)
	isRun(t, topic.counted(t)[lane.ID()], lane.ID(), 1, 1, 20)
}
