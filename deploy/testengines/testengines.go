// Package local finds, installs and starts real engines on the loopback interface: Postgres, Apache Kafka and
// ClickHouse, for tests, benchmarks and a first look at the service on more than one engine.
//
// Each engine is looked for in this order: at an address in the environment; as a program on this machine; in the
// user's cache folder, where it is installed first if need be by the machine's own package client (apt, Maven, npm),
// once for all processes and all runs. A started engine is a child of this process and dies with it.
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
)

// Environment variables that lead to engines which run already. Their data is theirs: nothing here deletes it.
const (
	PostgresEnv       = "LINKSTREAM_TEST_POSTGRES"        // URL of a database whose user may create databases
	KafkaEnv          = "LINKSTREAM_TEST_KAFKA"           // host:port of one broker, or several separated by commas
	ClickHouseEnv     = "LINKSTREAM_TEST_CLICKHOUSE"      // URL, native protocol
	ClickHouseHTTPEnv = "LINKSTREAM_TEST_CLICKHOUSE_HTTP" // URL of the same server by HTTP, if it is to be used
)

// RequireEnv is an environment variable: where it is 1, no embedded engine stands in for a real one, and a test that
// cannot have its engine fails rather than skips.
const RequireEnv = "LINKSTREAM_REQUIRE_ENGINES"

// user is who the engines know their clients as, where they ask.
const user = "linkstream"

const (
	startTimeout  = 2 * time.Minute  // from the start of a program to its first answer, recovery included
	stopTimeout   = 30 * time.Second // from the request to stop to the end
	remoteTimeout = 10 * time.Second // for the first answer of an engine that runs already
)

// ErrNotOurs is returned where an engine from the environment is asked to stop or start.
var ErrNotOurs = errors.New("engine was not started here")

// Starter is one of Postgres, Kafka and ClickHouse. The engine keeps its data and its log in dir, which may hold those
// of an earlier run, also of one that was killed, and which one process can use at a time. ctx bounds the start, not
// the life of the engine. The error says what was tried.
type Starter func(ctx context.Context, dir string, log *slog.Logger) (*Engine, error)

// Engine is an engine that answered. Its methods are safe for concurrent use.
type Engine struct {
	Name     string // "postgres", "kafka" or "clickhouse"
	Version  string // empty where the engine does not say
	Source   string // where it comes from: an environment variable, a folder, or "embedded"
	Addr     string // what clients are configured with: host:port for Kafka, else a URL with the password in it
	HTTPAddr string // ClickHouse only: URL of its HTTP interface; empty where unknown

	CertFile string // Postgres only: its certificate, its own authority, for clients that talk TLS; empty where unknown

	Secure *Secure // Kafka only: a second listener; nil for one that is embedded or from the environment

	mu      sync.Mutex
	server  server // nil for an engine from the environment
	release func() error
}

// server is an engine that can be stopped and started. Each method does nothing where nothing is to do.
type server interface {
	// start returns when clients are answered. The address and the data are those of the run before.
	start(ctx context.Context) error
	// stop ends the engine as its operators would, without waiting for its clients.
	stop() error
	// kill ends all of its processes at once by SIGKILL.
	kill() error
}

// Start starts a stopped engine on the address it had, with the data it had.
func (e *Engine) Start(ctx context.Context) error {
	return e.do("start", func(s server) error { return s.start(ctx) })
}

// Stop ends the engine as its operators would, without waiting for its clients. The data stays.
func (e *Engine) Stop() error { return e.do("stop", server.stop) }

// Kill ends the engine as kill -9 does. The data stays. An embedded engine is stopped.
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

// Close stops the engine if it was started here, and lets go of its folder. The folder stays. The engine cannot be
// started again.
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

// String returns one line that says which engine this is. It holds no password.
func (e *Engine) String() string {
	version := e.Version
	if version == "" {
		version = "of unknown version"
	}
	return fmt.Sprintf("%s %s (%s) at %s", e.Name, version, e.Source, redact(e.Addr))
}

// started returns e once s has answered. It owns lock, the lock on the engine's folder.
func (e *Engine) started(ctx context.Context, s server, lock func() error, log *slog.Logger) (*Engine, error) {
	begin := time.Now()
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s (%s): %w", e.Name, e.Source, err), lock())
	}
	e.server, e.release = s, lock
	log.Info("engine started", "engine", e.String(), "after", time.Since(begin).Round(time.Millisecond))
	return e, nil
}

// remote returns e, whose address came from the environment, once ping has answered.
func (e *Engine) remote(ctx context.Context, ping func(context.Context) error, log *slog.Logger) (*Engine, error) {
	ctx, cancel := context.WithTimeout(ctx, remoteTimeout)
	defer cancel()
	if err := ping(ctx); err != nil {
		return nil, fmt.Errorf("reach %s at %s from %s: %w", e.Name, redact(e.Addr), e.Source, err)
	}
	log.Info("engine found", "engine", e.String())
	return e, nil
}

// claim makes dir and locks it for this process.
func claim(dir string) (abs string, release func() error, err error) {
	if abs, err = filepath.Abs(dir); err != nil {
		return "", nil, fmt.Errorf("claim folder: %w", err)
	}
	if err := os.MkdirAll(abs, 0o755); err != nil {
		return "", nil, fmt.Errorf("claim folder: %w", err)
	}
	release, err = tryLock(filepath.Join(abs, "lock"))
	return abs, release, err
}
