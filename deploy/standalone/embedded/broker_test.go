package embedded_test

import (
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"
	"time"

	"linkstream/deploy/standalone/embedded"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

// An acknowledged click leaves the spool, so it must be on the disk by then. No program can see whether another one has synced
// a file, so the test reads the broker's own settings.
func TestBrokerSyncsWrites(t *testing.T) {
	broker, err := embedded.Dir(t.TempDir()).StartBroker("secret", slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	defer broker.Close()
	settings := reflect.ValueOf(broker).Elem().FieldByName("cfg")
	testkit.Equal(t, "syncs writes", settings.FieldByName("syncWrites").Bool(), true)
	testkit.Equal(t, "keeps data", settings.FieldByName("dataDir").String() != "", true)
}

// A month of clicks takes no more memory and disk than the first days, because what is counted is deleted. The last click stays.
func TestMonthOfClicksIsBounded(t *testing.T) {
	const (
		days, batches = 30, 100  // per day
		batchSize     = 60 << 10 // incompressible
	)
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	broker, err := embedded.Dir(dir).StartBroker("secret", log)
	testkit.Must(t, err)
	defer func() { broker.Close() }()
	cfg := embedded.StreamConfig(broker.ListenAddrs(), "secret")
	cfg.Partitions = 1
	client, err := stream.New(cfg, log)
	testkit.Must(t, err)
	defer func() { client.Close() }()
	testkit.Must(t, client.EnsureTopics(t.Context()))
	testkit.Must(t, client.KeepClicks(t.Context()))
	random, value, batch := rand.NewChaCha8([32]byte{1}), make([]byte, batchSize), new(stream.Batch)
	today := time.Now().Add(-(days + 1) * 24 * time.Hour)
	var disk, heap int64 // the most of the first ten days
	for day := range days {
		for range batches {
			_, _ = random.Read(value)
			batch.Reset(today)
			batch.Append(nil, value)
			testkit.Must(t, client.Produce(t.Context(), 0, batch))
		}
		today = today.Add(24 * time.Hour)
		last := int64((day+1)*batches - 1)
		testkit.Must(t, broker.DeleteRecords(cfg.Clicks, 0, last)) // as trimLogOnce does
		if day < 10 {
			disk, heap = max(disk, sizeOf(t, dir)), max(heap, heapInUse())
			continue
		}
		if now := sizeOf(t, dir); now > disk+batches*batchSize {
			t.Errorf("day %d: %d bytes of files, %d in the first days", day, now, disk)
		}
		if now := heapInUse(); now > heap+2<<20 {
			t.Errorf("day %d: %d bytes of memory, %d in the first days", day, now, heap)
		}
	}
	client.Close()
	broker.Close()
	broker, err = embedded.Dir(dir).StartBroker("secret", log)
	testkit.Must(t, err)
	if now := heapInUse(); now > heap+2<<20 {
		t.Errorf("after a restart: %d bytes of memory, %d in the first days", now, heap)
	}
	cfg.Brokers = broker.ListenAddrs()[0]
	client, err = stream.New(cfg, log)
	testkit.Must(t, err)
	start, end, err := client.Offsets(t.Context(), 0)
	testkit.Must(t, err)
	testkit.Equal(t, "records that are left", [2]int64{start, end}, [2]int64{days*batches - 1, days * batches})
}

// sizeOf returns the size of the files in dir.
func sizeOf(t *testing.T, dir string) (size int64) {
	t.Helper()
	testkit.Must(t, filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	}))
	return size
}

// heapInUse returns the bytes of memory that are in use.
func heapInUse() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
