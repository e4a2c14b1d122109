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
	"linkstream/schema/testkit"
)

// silentPort returns a loopback address that accepts connections and never answers.
func silentPort(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	t.Cleanup(func() { ln.Close() })
	return ln.Addr().String()
}

func TestCallsFailWithoutABroker(t *testing.T) {
	t.Parallel()
	calls := map[string]func(context.Context, *stream.Client) error{
		"Produce":      func(ctx context.Context, c *stream.Client) error { return c.Produce(ctx, 0, batchOf("x")) },
		"EnsureTopics": func(ctx context.Context, c *stream.Client) error { return c.EnsureTopics(ctx) },
		"Partitions":   func(ctx context.Context, c *stream.Client) error { _, err := c.Partitions(ctx); return err },
		"Offsets":      func(ctx context.Context, c *stream.Client) error { _, _, err := c.Offsets(ctx, 0); return err },
		"Lag": func(ctx context.Context, c *stream.Client) error {
			_, _, err := c.Lag(ctx, new(store).position)
			return err
		},
		"Fetch": func(ctx context.Context, c *stream.Client) error {
			_, err := c.Fetch(ctx, 0, 0, shortWait, discard)
			return err
		},
	}
	// each runs all calls concurrently, each with its own client.
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
	t.Run("calls fail where nothing listens", func(t *testing.T) {
		t.Parallel()
		each(t, testkit.FreeAddress(t), func(name string, call func(context.Context) error) {
			if err := call(t.Context()); err == nil {
				t.Errorf("%s: got no error", name)
			}
		})
	})
	t.Run("calls fail within the request timeout where nothing answers", func(t *testing.T) {
		t.Parallel()
		each(t, silentPort(t), func(name string, call func(context.Context) error) {
			testkit.Takes(t, 12*time.Second, func(int) {
				if err := call(t.Context()); err == nil {
					t.Errorf("%s: got no error", name)
				}
			})
		})
	})
	t.Run("calls end with their context", func(t *testing.T) {
		t.Parallel()
		each(t, silentPort(t), func(name string, call func(context.Context) error) {
			testkit.Takes(t, 2*time.Second, func(int) {
				ctx, cancel := context.WithTimeout(t.Context(), shortWait)
				defer cancel()
				if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: got %v", name, err)
				}
			})
		})
	})
}

func TestClientSurvivesABrokerRestart(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	client := broker.CreateTopics(2)
	produce(t, client, 0, "before")

	broker.Stop()
	if err := client.Produce(t.Context(), 0, batchOf("lost")); err == nil {
		t.Fatal("Produce to a stopped broker: got no error")
	}
	if _, err := client.Fetch(t.Context(), 0, 0, shortWait, discard); err == nil {
		t.Fatal("Fetch from a stopped broker: got no error")
	}

	broker.Start()
	testkit.Succeeds(t, func() error { return client.Produce(t.Context(), 0, batchOf("after")) })
	testkit.Succeeds(t, func() error {
		_, err := client.Fetch(t.Context(), 0, 0, shortWait, discard)
		return err
	})
	testkit.Equal(t, "values", fetch(t, client, 0, 0, 2), []string{"before", "after"})
	wantPartitions(t, client, 2)
}

func TestClientFindsATopicThatIsCreatedLater(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	early := streamtest.NewClient(t, broker.Config(2))
	if err := early.Produce(t.Context(), 0, batchOf("early")); err == nil {
		t.Fatal("got no error")
	}
	broker.CreateTopics(2)
	testkit.Succeeds(t, func() error { return early.Produce(t.Context(), 0, batchOf("late")) })
	testkit.Equal(t, "values", fetch(t, early, 0, 0, 1), []string{"late"})
}

// The bit flips in the running broker's segment file, as on a failing disk.
func TestFetchRefusesACorruptedBatch(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	client := broker.CreateTopics(1)
	produce(t, client, 0, "good-0", "good-1")
	produce(t, client, 0, "damaged", "damaged")
	produce(t, client, 0, "later")
	flipLastBit(t, segment(t, broker), 1)

	testkit.Equal(t, "values", fetch(t, client, 0, 0, 2), []string{"good-0", "good-1"})
	_, err := client.Fetch(t.Context(), 0, 2, shortWait, func(r stream.Record) error {
		t.Errorf("record %d reached the callback: %q", r.Offset, r.Value)
		return nil
	})
	if err == nil {
		t.Fatal("got no error")
	}
	testkit.Equal(t, "values", fetch(t, client, 0, 4, 1), []string{"later"})
}

// segment returns the segment file of the clicks partition.
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

// flipLastBit flips the last bit of batch n of a segment file, counted from 0.
func flipLastBit(t testing.TB, path string, n int) {
	t.Helper()
	data, err := os.ReadFile(path)
	testkit.Must(t, err)
	end := 0
	for range n + 1 { // baseOffset in 8 bytes, batchLength in 4, and that many bytes
		end += 12 + int(data[end+8])<<24 + int(data[end+9])<<16 + int(data[end+10])<<8 + int(data[end+11])
	}
	damaged := bytes.Clone(data[end-1 : end])
	damaged[0] ^= 1
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	testkit.Must(t, err)
	defer file.Close()
	_, err = file.WriteAt(damaged, int64(end-1))
	testkit.Must(t, err)
}
