package testengines

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/twmb/franz-go/pkg/kfake"
)

// embeddedBroker is a broker in this process that speaks Kafka's protocol.
type embeddedBroker struct {
	dir     string
	port    int
	log     *slog.Logger
	cluster *kfake.Cluster // nil while it is stopped
}

func (b *embeddedBroker) start(context.Context) error {
	if b.cluster != nil {
		return nil
	}
	// After a kill this file is older than the log, and the broker would reject idempotent producers.
	if err := os.Remove(filepath.Join(b.dir, "seq_windows.json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(b.port), kfake.DataDir(b.dir), kfake.SyncWrites())
	if err != nil {
		return fmt.Errorf("start broker in %q: %w", b.dir, err)
	}
	b.cluster = cluster
	return nil
}

func (b *embeddedBroker) stop() error {
	if b.cluster != nil {
		b.cluster.Close()
		b.cluster = nil
	}
	return nil
}

func (b *embeddedBroker) kill() error { return b.stop() }
