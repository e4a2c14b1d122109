package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"linkstream/schema/filelock"
	"linkstream/schema/stream"
)

// brokerUser is the one user of the embedded broker. Every local process can connect to a port of the loopback
// interface, so the broker asks for a password. With SCRAM the password itself is never sent.
const brokerUser = "linkstream"

// brokerSecret returns the password of brokerUser, which is in the file at path. It creates a random one if there is none.
func brokerSecret(path string) (string, error) {
	kept, err := os.ReadFile(path)
	if err == nil && len(kept) > 0 {
		return string(kept), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read broker secret: %w", err)
	}
	secret := rand.Text()
	if err := os.WriteFile(path, []byte(secret), 0o600); err != nil {
		return "", fmt.Errorf("write broker secret: %w", err)
	}
	return secret, nil
}

// startBroker starts the embedded broker, which speaks Kafka's protocol on a port of the loopback interface. Its log is in
// dir.
func startBroker(dir, secret string, log *slog.Logger) (*kfake.Cluster, error) {
	for _, stale := range []string{
		"seq_windows.json", // after a kill it is older than the log, and the broker would reject idempotent producers
		"sasl.json",        // the users of the last start, which would replace the one given here
	} {
		if err := os.Remove(filepath.Join(dir, stale)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("start broker: %w", err)
		}
	}
	// SyncWrites: an acknowledged click leaves the spool, so the log must be as durable as the spool.
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DataDir(dir), kfake.SyncWrites(),
		kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", brokerUser, secret), kfake.WithLogger(brokerLog{log}))
	if err != nil {
		return nil, fmt.Errorf("start broker in %q: %w", dir, err)
	}
	return broker, nil
}

// runningBroker returns the address in the file at path, and whether a broker answers there: a service that was killed leaves
// the file behind.
func runningBroker(path string) (addr string, ok bool) {
	kept, err := os.ReadFile(path)
	if err != nil {
		return "", false
	}
	conn, err := net.DialTimeout("tcp", string(kept), time.Second)
	if err != nil {
		return "", false
	}
	conn.Close()
	return string(kept), true
}

// streamConfig returns the configuration of clients of the embedded broker.
func streamConfig(addrs []string, secret string) stream.Config {
	cfg := stream.DefaultConfig()
	cfg.Brokers, cfg.Retention = strings.Join(addrs, ","), 0
	cfg.SASL, cfg.Username, cfg.Password = "scram-sha-256", brokerUser, secret
	return cfg
}

// brokerLog logs the broker's warnings and errors.
type brokerLog struct{ log *slog.Logger }

func (l brokerLog) Logf(level kfake.LogLevel, format string, args ...any) {
	if level == kfake.LogLevelError || level == kfake.LogLevelWarn {
		l.log.Warn("broker: " + fmt.Sprintf(format, args...))
	}
}

// trimEvery is how often counted records are deleted.
const trimEvery = time.Minute

// trimLog deletes the records of the clicks topic that come before the last counted click, until ctx is done. The click
// itself stays: the log never becomes empty, so its offsets survive a restart of the broker, and the click identifies the
// log. The topic's retention is off. It would delete by age, also what was not counted yet, and the whole log of an idle
// week, after which the broker gives offset 0 again.
func (a *App) trimLog(ctx context.Context) {
	ticker := time.NewTicker(trimEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			a.trimLogOnce(ctx)
		}
	}
}

// trimLogOnce deletes nothing while a backup runs: its copy of the click store may be older than its copy of the log.
func (a *App) trimLogOnce(ctx context.Context) {
	lock, err := filelock.TryAcquire(a.cfg.backupLockPath())
	if err != nil {
		if !errors.Is(err, filelock.ErrHeld) {
			a.log.Warn("cannot delete counted records", "error", err)
		}
		return
	}
	topic := stream.DefaultConfig().Clicks
	for partition, last := range a.ingest.LastCounted() {
		start, _, err := a.client.Offsets(ctx, partition)
		if err == nil && start < last {
			err = a.broker.DeleteRecords(topic, int32(partition), last)
		}
		if err != nil && ctx.Err() == nil {
			a.log.Warn("cannot delete counted records", "partition", partition, "before", last, "error", err)
		}
	}
	if err := lock.Release(); err != nil {
		a.log.Warn("cannot release the lock of backups", "error", err)
	}
}
