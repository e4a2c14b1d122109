package worker_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/ingest/worker"
	"linkstream/schema/sqlite"
	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

// The test binary runs as a worker if these name a broker and a store.
const envBrokers, envStore = "LINKSTREAM_WORKER_TEST_BROKERS", "LINKSTREAM_WORKER_TEST_STORE"

// countUntilKilled is the main function of a worker process. Its standard input ends with the test process.
func countUntilKilled(brokers, path string) (status int) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	store, err := sqlite.OpenClickStore(ctx, path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer store.Close()
	cfg := stream.DefaultConfig()
	cfg.Brokers = brokers
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	client, err := stream.New(cfg, log)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer client.Close()
	if err := worker.New(quick(), client, store, nil, log, metrics.NewSet()).Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// startProcess starts a worker process. kill sends it SIGKILL and waits for it.
func startProcess(t testing.TB, broker *streamtest.Broker, path string) (kill func()) {
	t.Helper()
	program, err := os.Executable()
	testkit.Must(t, err)
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), envBrokers+"="+broker.Addr, envStore+"="+path)
	output := new(testkit.Buffer)
	cmd.Stderr = output
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	testkit.Must(t, cmd.Start())
	killed := false
	kill = func() {
		if !killed {
			killed = true
			cmd.Process.Kill()
			cmd.Wait()
		}
	}
	t.Cleanup(func() {
		kill()
		if t.Failed() {
			t.Logf("output of the worker process:\n%s", output.String())
		}
	})
	return kill
}

// Two members of a group, in two processes, share a store.
func TestWorkerTakesOverFromAKilledWorker(t *testing.T) {
	t.Parallel()
	const partitions, rounds, each = 4, 60, 25
	broker := streamtest.StartBroker(t)
	client, path := broker.CreateTopics(partitions), filepath.Join(t.TempDir(), "clicks.db")
	store, err := sqlite.OpenClickStore(t.Context(), path)
	testkit.Must(t, err)
	t.Cleanup(func() { store.Close() })
	sent := int64(0)
	send := func(rounds uint64) {
		t.Helper()
		for range rounds {
			for p := range partitions {
				first := uint64(sent)/partitions + 1
				produce(t, client, p, encoded(lane(byte(p)), first, first+each-1)...)
			}
			sent += partitions * each
		}
	}

	kill := startProcess(t, broker, path)
	send(rounds)
	awaitTotal(t, store, sent)
	second := start(t, quick(), client, store)
	testkit.Succeeds(t, func() error {
		if n := second.metric("partitions"); n != partitions/2 {
			return fmt.Errorf("the second worker has %d partitions", n)
		}
		return nil
	})
	send(rounds) // both are busy when one is killed
	kill()
	send(rounds)
	awaitTotal(t, store, sent)
	if counted := second.metric("clicks_counted_total"); counted == 0 || second.metric("partitions") != partitions {
		t.Errorf("the second worker counted %d clicks and has %d partitions", counted, second.metric("partitions"))
	}
}
