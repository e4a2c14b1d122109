package stream_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
)

// closedPort returns an address of the loopback interface where nothing listens.
func closedPort(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// silentPort returns an address that accepts connections and never answers.
func silentPort(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln.Addr().String()
}

func TestUnreachableBroker(t *testing.T) {
	t.Parallel()
	calls := map[string]func(context.Context, *stream.Client) error{
		"Produce":      func(ctx context.Context, c *stream.Client) error { return c.Produce(ctx, 0, batchOf("x")) },
		"EnsureTopics": func(ctx context.Context, c *stream.Client) error { return c.EnsureTopics(ctx) },
		"Partitions":   func(ctx context.Context, c *stream.Client) error { _, err := c.Partitions(ctx); return err },
		"Offsets":      func(ctx context.Context, c *stream.Client) error { _, _, err := c.Offsets(ctx, 0); return err },
		"Uncounted": func(ctx context.Context, c *stream.Client) error {
			_, _, err := c.Lag(ctx, new(store).position)
			return err
		},
		"Fetch": func(ctx context.Context, c *stream.Client) error {
			_, err := c.Fetch(ctx, 0, 0, shortWait, discard)
			return err
		},
	}
	// each runs every call at once, with a client of its own.
	each := func(t *testing.T, addr string, check func(name string, call func(context.Context) error)) {
		var done sync.WaitGroup
		for name, call := range calls {
			cfg := stream.DefaultConfig()
			cfg.Brokers = addr
			client := streamtest.NewClient(t, cfg)
			done.Go(func() { check(name, func(ctx context.Context) error { return call(ctx, client) }) })
		}
		done.Wait()
	}
	t.Run("every call fails where nothing listens", func(t *testing.T) {
		t.Parallel()
		each(t, closedPort(t), func(name string, call func(context.Context) error) {
			if err := call(t.Context()); err == nil {
				t.Errorf("%s: got no error", name)
			}
		})
	})
	t.Run("every call fails in bounded time where nothing answers", func(t *testing.T) {
		t.Parallel()
		each(t, silentPort(t), func(name string, call func(context.Context) error) {
			began := time.Now()
			if err := call(t.Context()); err == nil {
				t.Errorf("%s: got no error", name)
			}
			if took := time.Since(began); took > 12*time.Second {
				t.Errorf("%s took %v", name, took)
			}
		})
	})
	t.Run("every call ends with its context", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithTimeout(t.Context(), shortWait)
		defer cancel()
		each(t, silentPort(t), func(name string, call func(context.Context) error) {
			began := time.Now()
			if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: got %v", name, err)
			}
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("%s took %v", name, took)
			}
		})
	})
}

func TestBrokerRestart(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	client := broker.Topics(2)
	produce(t, client, 0, "before")

	broker.Stop()
	if err := client.Produce(t.Context(), 0, batchOf("lost")); err == nil {
		t.Fatal("Produce to a stopped broker: got no error")
	}
	if _, err := client.Fetch(t.Context(), 0, 0, shortWait, discard); err == nil {
		t.Fatal("Fetch from a stopped broker: got no error")
	}

	broker.Start()
	streamtest.Succeeds(t, func() error { return client.Produce(t.Context(), 0, batchOf("after")) })
	streamtest.Succeeds(t, func() error {
		_, err := client.Fetch(t.Context(), 0, 0, shortWait, discard)
		return err
	})
	wantValues(t, fetch(t, client, 0, 0, 2), []string{"before", "after"})
	wantPartitions(t, client, 2)
}

func TestTopicThatIsCreatedLater(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	early := streamtest.NewClient(t, broker.Config(2))
	if err := early.Produce(t.Context(), 0, batchOf("too early")); err == nil {
		t.Fatal("got no error")
	}
	broker.Topics(2)
	streamtest.Succeeds(t, func() error { return early.Produce(t.Context(), 0, batchOf("in time")) })
	wantValues(t, fetch(t, early, 0, 0, 1), []string{"in time"})
}

// TestCorruptedBatch flips a bit of a stored batch under the running broker, as a failing disk would.
func TestCorruptedBatch(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	client := broker.Topics(1)
	produce(t, client, 0, "good-0", "good-1")
	produce(t, client, 0, "damaged", "damaged")
	produce(t, client, 0, "later")
	flipLastBitBefore(t, segment(t, broker), 3)

	wantValues(t, fetch(t, client, 0, 0, 2), []string{"good-0", "good-1"})
	_, err := client.Fetch(t.Context(), 0, 2, shortWait, func(r stream.Record) error {
		t.Errorf("record %d was delivered: %q", r.Offset, r.Value)
		return nil
	})
	if err == nil {
		t.Fatal("got no error")
	}
	wantValues(t, fetch(t, client, 0, 4, 1), []string{"later"})
}

// segment returns the file with the clicks of partition 0.
func segment(t testing.TB, broker *streamtest.Broker) string {
	t.Helper()
	var found string
	err := filepath.WalkDir(broker.Dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".dat") && !strings.Contains(path, stream.DefaultConfig().Dead) {
			found = path
		}
		return err
	})
	if err != nil || found == "" {
		t.Fatalf("segment %q, error %v", found, err)
	}
	return found
}

// flipLastBitBefore flips a bit at the end of the batch that stands before the file's batch n, counted from 1.
func flipLastBitBefore(t testing.TB, path string, n int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	end := 0
	for range n - 1 { // a batch is its offset in 8 bytes, the length of the rest in 4, and the rest
		end += 12 + int(data[end+8])<<24 + int(data[end+9])<<16 + int(data[end+10])<<8 + int(data[end+11])
	}
	damaged := bytes.Clone(data[end-1 : end])
	damaged[0] ^= 1
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt(damaged, int64(end-1)); err != nil {
		t.Fatal(err)
	}
}
