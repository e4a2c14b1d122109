package embedded

import (
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

// Secret returns the password of the broker's user. It creates a random one if there is none.
func (d Dir) Secret() (string, error) {
	path := d.BrokerSecret()
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

// StartBroker starts the embedded broker, which speaks Kafka's protocol on a port of the loopback interface. The caller must
// hold the lock of the service.
func (d Dir) StartBroker(secret string, log *slog.Logger) (*kfake.Cluster, error) {
	dir := d.Broker()
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

// RunningBroker returns the address of the broker, and whether a broker answers there: a service that was killed leaves the
// address behind.
func (d Dir) RunningBroker() (addr string, ok bool) {
	kept, err := os.ReadFile(d.BrokerAddr())
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

// StreamConfig returns the configuration of clients of the embedded broker.
func StreamConfig(addrs []string, secret string) stream.Config {
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

// OpenBroker returns the address and the secret of the broker. If the service does not run, it starts the broker, and keeps the
// service from starting until stop is called.
func (d Dir) OpenBroker(log *slog.Logger) (addr, secret string, stop func(), err error) {
	if secret, err = d.Secret(); err != nil {
		return "", "", nil, err
	}
	lock, err := filelock.TryAcquire(d.Lock())
	if errors.Is(err, filelock.ErrHeld) {
		addr, ok := d.RunningBroker()
		if !ok {
			return "", "", nil, errors.New("the service is starting or stopping, try again")
		}
		return addr, secret, func() {}, nil
	}
	if err != nil {
		return "", "", nil, fmt.Errorf("lock data directory: %w", err)
	}
	broker, err := d.StartBroker(secret, log.With("service", "broker"))
	if err != nil {
		return "", "", nil, errors.Join(err, lock.Release())
	}
	stop = func() {
		broker.Close()
		_ = lock.Release() // the process ends
	}
	return broker.ListenAddrs()[0], secret, stop, nil
}
