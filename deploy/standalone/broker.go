package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/twmb/franz-go/pkg/kfake"
)

// startBroker starts the embedded broker: Kafka's protocol on a port of the loopback interface, its log
// in dir.
func startBroker(dir string, log *slog.Logger) (*kfake.Cluster, error) {
	// After a kill this file is older than the log, and producers that number their batches would be refused.
	if err := os.Remove(filepath.Join(dir, "seq_windows.json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("start broker: %w", err)
	}
	// SyncWrites: clicks leave the spool when the broker has acknowledged them, so that must be as durable as the spool.
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DataDir(dir), kfake.SyncWrites(), kfake.WithLogger(brokerLog{log}))
	if err != nil {
		return nil, fmt.Errorf("start broker in %q: %w", dir, err)
	}
	return broker, nil
}

// brokerLog passes on what the broker says about trouble.
type brokerLog struct{ log *slog.Logger }

func (l brokerLog) Logf(level kfake.LogLevel, format string, args ...any) {
	if level == kfake.LogLevelError || level == kfake.LogLevelWarn {
		l.log.Warn("broker: " + fmt.Sprintf(format, args...))
	}
}
