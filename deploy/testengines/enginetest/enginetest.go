// Package localtest gives tests the real engines of package local. A test binary's tests share engines, each test with
// a database or topics of its own:
//
//	var engines enginetest.Engines
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(engines.Of(m)) }
//
// A test whose engine cannot be had is skipped, and says so; where testengines.RequireEnv is 1, it fails.
package enginetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/jackc/pgx/v5"

	"linkstream/deploy/testengines"
)

// cleanupTimeout bounds what is done when a test has ended.
const cleanupTimeout = 30 * time.Second

// Engines are the engines that the tests of one binary share. Each is started for the first test that asks for it. The
// zero value is ready for use.
type Engines struct {
	postgres, kafka, clickhouse shared

	mu  sync.Mutex
	dir string // of all of them, empty until it is needed
}

// shared is an engine that is started at most once, or why it could not be.
type shared struct {
	once   sync.Once
	engine *testengines.Engine
	err    error
}

// Of returns what runs the tests of m and then stops the engines: for goleak.VerifyTestMain, or for os.Exit(….Run()).
func (e *Engines) Of(m *testing.M) interface{ Run() int } { return run{e, m} }

type run struct {
	engines *Engines
	m       *testing.M
}

func (r run) Run() int {
	code := r.m.Run()
	if err := r.engines.close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	return code
}

func (e *Engines) close() error {
	var errs []error
	for _, s := range []*shared{&e.postgres, &e.kafka, &e.clickhouse} {
		if s.engine != nil {
			errs = append(errs, s.engine.Close())
		}
	}
	if e.dir != "" {
		errs = append(errs, os.RemoveAll(e.dir))
	}
	return errors.Join(errs...)
}

// Postgres returns the URL of an empty database, which is dropped when the test ends.
func (e *Engines) Postgres(tb testing.TB) string {
	tb.Helper()
	admin := e.get(tb, &e.postgres, "postgres", testengines.Postgres).Addr
	name := Name()
	execPostgres := func(ctx context.Context, sql string) error {
		conn, err := pgx.Connect(ctx, admin)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, sql)
		return errors.Join(err, conn.Close(ctx))
	}
	create(tb, execPostgres, "CREATE DATABASE "+name, "DROP DATABASE "+name+" WITH (FORCE)")
	return withDatabase(tb, admin, name)
}

// ClickHouse returns the URL, for the native protocol, of an empty database, which is dropped when the test ends.
func (e *Engines) ClickHouse(tb testing.TB) string {
	tb.Helper()
	return clickhouseDatabase(tb, e.get(tb, &e.clickhouse, "clickhouse", testengines.ClickHouse).Addr)
}

// ClickHouseHTTP is ClickHouse for HTTP.
func (e *Engines) ClickHouseHTTP(tb testing.TB) string {
	tb.Helper()
	engine := e.get(tb, &e.clickhouse, "clickhouse", testengines.ClickHouse)
	if engine.HTTPAddr == "" {
		unavailable(tb, fmt.Errorf("no address for HTTP: %s is not set", testengines.ClickHouseHTTPEnv))
	}
	return clickhouseDatabase(tb, engine.HTTPAddr)
}

func clickhouseDatabase(tb testing.TB, admin string) string {
	tb.Helper()
	name := Name()
	execClickHouse := func(ctx context.Context, sql string) error {
		options, err := clickhouse.ParseDSN(admin)
		if err != nil {
			return err
		}
		conn, err := clickhouse.Open(options)
		if err != nil {
			return err
		}
		return errors.Join(conn.Exec(ctx, sql), conn.Close())
	}
	create(tb, execClickHouse, "CREATE DATABASE "+name, "DROP DATABASE "+name)
	return withDatabase(tb, admin, name)
}

// Kafka returns the address of brokers. A test that calls its topics and groups by a Name does not meet others.
func (e *Engines) Kafka(tb testing.TB) string {
	tb.Helper()
	return e.get(tb, &e.kafka, "kafka", testengines.Kafka).Addr
}

// Name returns a name that no other test has, of letters, digits and an underscore.
func Name() string { return "test_" + strings.ToLower(rand.Text()[:12]) }

// Own starts an engine for one test, which may stop and kill it. It is closed when the test ends. The environment does
// not lead to it: what runs there is not the test's to stop. Where it leads to any, a parallel test cannot call Own.
func Own(tb testing.TB, start testengines.Starter) *testengines.Engine {
	tb.Helper()
	for _, name := range []string{testengines.PostgresEnv, testengines.KafkaEnv, testengines.ClickHouseEnv, testengines.ClickHouseHTTPEnv} {
		if os.Getenv(name) != "" {
			tb.Setenv(name, "")
		}
	}
	engine, err := start(tb.Context(), tb.TempDir(), slog.New(slog.NewTextHandler(tb.Output(), nil)))
	if err != nil {
		unavailable(tb, err)
	}
	tb.Cleanup(func() {
		if err := engine.Close(); err != nil {
			tb.Error(err)
		}
	})
	return engine
}

// SecureKafka starts a Kafka like Own does and returns its listener that asks for TLS and a password, and the address of
// the one that asks for nothing.
func SecureKafka(tb testing.TB) (secure *testengines.Secure, addr string) {
	tb.Helper()
	engine := Own(tb, testengines.Kafka)
	if engine.Secure == nil {
		unavailable(tb, errors.New("the embedded broker has no listener for TLS"))
	}
	return engine.Secure, engine.Addr
}

// Certificate returns files of a new certificate for the loopback interface, its own authority, and of its key; PEM.
func Certificate(tb testing.TB) (certFile, keyFile string) {
	tb.Helper()
	cert, key, err := testengines.NewCertificate()
	if err != nil {
		tb.Fatal(err)
	}
	dir := tb.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, pem := range map[string][]byte{certFile: cert, keyFile: key} {
		if err := os.WriteFile(path, pem, 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return certFile, keyFile
}

func (e *Engines) get(tb testing.TB, s *shared, name string, start testengines.Starter) *testengines.Engine {
	tb.Helper()
	s.once.Do(func() {
		var dir string
		if dir, s.err = e.folder(); s.err == nil {
			// Not the test's context: the engine serves the other tests, too.
			s.engine, s.err = start(context.Background(), filepath.Join(dir, name), slog.New(slog.NewTextHandler(os.Stderr, nil)))
		}
	})
	if s.err != nil {
		unavailable(tb, s.err)
	}
	return s.engine
}

func (e *Engines) folder() (dir string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.dir == "" {
		e.dir, err = os.MkdirTemp("", "linkstream-engines-")
	}
	return e.dir, err
}

// unavailable ends a test that cannot have its engine.
func unavailable(tb testing.TB, err error) {
	tb.Helper()
	if os.Getenv(testengines.RequireEnv) == "1" {
		tb.Fatal(err)
	}
	fmt.Fprintf(os.Stderr, "\n*** NOT TESTED: %s: %v\n\n", tb.Name(), err)
	tb.Skip(err)
}

// create runs statement with exec, and undo when the test ends.
func create(tb testing.TB, exec func(ctx context.Context, sql string) error, statement, undo string) {
	tb.Helper()
	if err := exec(tb.Context(), statement); err != nil {
		tb.Fatalf("%s: %v", statement, err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
		defer cancel()
		if err := exec(ctx, undo); err != nil {
			tb.Errorf("%s: %v", undo, err)
		}
	})
}

// withDatabase returns the URL with another database.
func withDatabase(tb testing.TB, addr, name string) string {
	tb.Helper()
	u, err := url.Parse(addr)
	if err != nil {
		tb.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}
