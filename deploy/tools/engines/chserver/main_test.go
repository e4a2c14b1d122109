//go:build linux

package main_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"go.uber.org/goleak"

	"linkstream/deploy/tools/engines/enginetest"
)

var engines enginetest.Engines

func TestMain(m *testing.M) { goleak.VerifyTestMain(engines.Of(m)) }

// lookAtSources looks at the program's files. The go command reuses the result of a test until a file that the test
// itself has looked at changes; the files that the compiler reads to build the program do not count.
func lookAtSources(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	for _, file := range files {
		_, failed := os.Stat(file)
		err = errors.Join(err, failed)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// eachProtocol runs a test by each protocol and compression of clickhouse-go, on an empty database each.
func eachProtocol(t *testing.T, test func(t *testing.T, conn driver.Conn)) {
	variants := []struct {
		name     string
		database func(testing.TB) string
		method   clickhouse.CompressionMethod
	}{
		{"native", engines.ClickHouse, clickhouse.CompressionNone},
		{"native, LZ4", engines.ClickHouse, clickhouse.CompressionLZ4},
		{"native, ZSTD", engines.ClickHouse, clickhouse.CompressionZSTD},
		{"HTTP", engines.ClickHouseHTTP, clickhouse.CompressionNone},
		{"HTTP, LZ4", engines.ClickHouseHTTP, clickhouse.CompressionLZ4},
		{"HTTP, ZSTD", engines.ClickHouseHTTP, clickhouse.CompressionZSTD},
		{"HTTP, gzip", engines.ClickHouseHTTP, clickhouse.CompressionGZIP},
	}
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) { test(t, open(t, v.database(t), v.method)) })
	}
}

func open(t *testing.T, url string, method clickhouse.CompressionMethod) driver.Conn {
	t.Helper()
	lookAtSources(t)
	options, err := clickhouse.ParseDSN(url)
	if err != nil {
		t.Fatal(err)
	}
	options.Compression = &clickhouse.Compression{Method: method}
	options.MaxOpenConns, options.MaxIdleConns = 20, 10
	conn, err := clickhouse.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn
}

func exec(t *testing.T, conn driver.Conn, sql string) {
	t.Helper()
	if err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// number runs a query that returns one number.
func number(t *testing.T, conn driver.Conn, sql string, args ...any) uint64 {
	t.Helper()
	var n uint64
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// code returns the code of the exception that a client was told, 0 if err is something else.
func code(err error) int32 {
	if x, ok := errors.AsType[*clickhouse.Exception](err); ok {
		return x.Code
	}
	return 0
}
