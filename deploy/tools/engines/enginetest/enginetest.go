// Package enginetest provides tests with the real engines of package testengines. The tests of a binary share engines,
// and each test has a database or topics of its own:
//
//	var engines enginetest.Engines
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(engines.Of(m)) }
//
// A test whose engine is not available fails. Files of tests that import this package have the build constraint engines
// or deploy, so that go test ./... without tags needs Go alone.
package enginetest

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/jackc/pgx/v5"

	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema/testkit"
)

// cleanupTimeout bounds the removal of a test's database.
const cleanupTimeout = testkit.Patience

// Engines are the engines that the tests of one binary share. Each is started for the first test that needs it. The
// zero value is ready to use.
type Engines struct {
	postgres, kafka, clickhouse shared

	mu      sync.Mutex
	dir     string             // of all engines, empty until one is started
	remove  func() error       // removes dir
	sets    int                // how many sets Lend has tried to start
	started []*testengines.All // by Lend
	idle    []*testengines.All // those of started that no test uses
}

// shared is an engine that is started at most once, or the error of that start.
type shared struct {
	once   sync.Once
	engine *testengines.Engine
	err    error
}

// Of returns a runner that runs the tests of m and then stops the engines, for goleak.VerifyTestMain.
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
	all := append(e.started, &testengines.All{Postgres: e.postgres.engine, Kafka: e.kafka.engine,
		ClickHouse: e.clickhouse.engine})
	var errs []error
	for _, engines := range all {
		errs = append(errs, engines.Close())
	}
	if e.remove != nil {
		errs = append(errs, e.remove())
	}
	return errors.Join(errs...)
}

// Postgres returns the URL of a new database, which is dropped when the test ends.
func (e *Engines) Postgres(tb testing.TB) string {
	tb.Helper()
	return postgresDatabase(tb, e.get(tb, &e.postgres, "postgres", testengines.Postgres).Addr)
}

func postgresDatabase(tb testing.TB, admin string) string {
	tb.Helper()
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

// ClickHouse returns the URL, for the native protocol, of a new database, which is dropped when the test ends.
func (e *Engines) ClickHouse(tb testing.TB) string {
	tb.Helper()
	return clickhouseDatabase(tb, e.get(tb, &e.clickhouse, "clickhouse", testengines.ClickHouse).Addr)
}

// ClickHouseHTTP returns the URL, for HTTP, of a new database, which is dropped when the test ends.
func (e *Engines) ClickHouseHTTP(tb testing.TB) string {
	tb.Helper()
	engine := e.get(tb, &e.clickhouse, "clickhouse", testengines.ClickHouse)
	if engine.HTTPAddr == "" {
		tb.Fatalf("no address for HTTP: %s is not set", testengines.ClickHouseHTTPEnv)
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

// Kafka returns the addresses of the brokers. Tests keep apart by naming their topics and groups with Name.
func (e *Engines) Kafka(tb testing.TB) string {
	tb.Helper()
	return e.get(tb, &e.kafka, "kafka", testengines.Kafka).Addr
}

// Name returns a unique name of letters, digits and an underscore.
func Name() string { return "test_" + strings.ToLower(rand.Text()[:12]) }

// Own starts an engine for one test, which may stop and kill it. The engine is closed when the test ends. start is one
// that does not use the environment, such as testengines.StartPostgres.
func Own(tb testing.TB, start testengines.Starter) *testengines.Engine {
	tb.Helper()
	dir, remove, err := tempFolder()
	testkit.Must(tb, err)
	tb.Cleanup(func() { testkit.Must(tb, remove()) })
	engine, err := start(tb.Context(), dir, slog.New(slog.NewTextHandler(tb.Output(), nil)))
	testkit.Must(tb, err)
	tb.Cleanup(func() { testkit.Must(tb, engine.Close()) })
	return engine
}

// SecureKafka starts a Kafka for one test and returns its listener with TLS and authentication, and the address of its
// listener without.
func SecureKafka(tb testing.TB) (secure *testengines.Secure, addr string) {
	tb.Helper()
	engine := Own(tb, testengines.StartKafka)
	return engine.Secure, engine.Addr
}

// Brokers starts a Kafka of three nodes for one test, which may lose some of them.
func Brokers(tb testing.TB) *testengines.Brokers {
	tb.Helper()
	dir, remove, err := tempFolder()
	testkit.Must(tb, err)
	tb.Cleanup(func() { testkit.Must(tb, remove()) })
	brokers, err := testengines.StartBrokers(tb.Context(), dir, slog.New(slog.NewTextHandler(tb.Output(), nil)))
	testkit.Must(tb, err)
	tb.Cleanup(func() { testkit.Must(tb, brokers.Close()) })
	return brokers
}

// Certificate returns the files of a new self-signed certificate for the loopback interface and of its key; PEM.
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
			// Without the test's context: the engine serves other tests, too.
			s.engine, s.err = start(context.Background(), filepath.Join(dir, name),
				slog.New(slog.NewTextHandler(os.Stderr, nil)))
		}
	})
	testkit.Must(tb, s.err)
	return s.engine
}

func (e *Engines) folder() (dir string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.dir == "" {
		e.dir, e.remove, err = tempFolder()
	}
	return e.dir, err
}

// tempFolder creates a folder for engines: on disk for benchmarks, whose figures are of engines that write to disks.
func tempFolder() (dir string, remove func() error, err error) {
	if flag.Lookup("test.bench").Value.String() != "" {
		return testengines.DiskFolder()
	}
	return testengines.TempFolder()
}

// create executes statement by exec, and undo when the test ends.
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

// withDatabase returns the URL of another database of the same engine.
func withDatabase(tb testing.TB, addr, name string) string {
	tb.Helper()
	u, err := url.Parse(addr)
	if err != nil {
		tb.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}
