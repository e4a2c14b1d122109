package testengines_test

import (
	"errors"
	"strings"
	"testing"

	"linkstream/deploy/tools/engines/testengines"
)

func TestEnvironmentLeadsToAllEngines(t *testing.T) {
	skipIfShort(t)
	for _, name := range []string{testengines.PostgresEnv, testengines.KafkaEnv, testengines.ClickHouseEnv, testengines.ClickHouseHTTPEnv} {
		t.Setenv(name, "")
	}
	all, err := testengines.OpenAll(t.Context(), t.TempDir(), discard)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := all.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, variable := range all.Environment() {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	found, err := testengines.OpenAll(t.Context(), t.TempDir(), discard)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range found.Engines() {
		if ours := all.Engines()[i]; e.Addr != ours.Addr || e.HTTPAddr != ours.HTTPAddr ||
			!strings.HasPrefix(e.Source, "LINKSTREAM_TEST_") {
			t.Errorf("got %v, want that of %v", e, ours)
		}
	}
	testEngineFromTheEnvironment(t, all.Postgres)
}

// testEngineFromTheEnvironment ends with ours stopped, a Postgres.
func testEngineFromTheEnvironment(t *testing.T, ours *testengines.Engine) {
	t.Run("is used and cannot be stopped", func(t *testing.T) {
		t.Setenv(testengines.PostgresEnv, ours.Addr)
		e, err := testengines.Postgres(t.Context(), t.TempDir(), discard)
		if err != nil {
			t.Fatal(err)
		}
		if e.Addr != ours.Addr || e.Source != testengines.PostgresEnv || e.Version != ours.Version {
			t.Errorf("got %v, want that of %v", e, ours)
		}
		for _, err := range []error{e.Stop(), e.Kill(), e.Start(t.Context())} {
			if !errors.Is(err, testengines.ErrNotOurs) {
				t.Errorf("got %v", err)
			}
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if err := (postgresStore{}).write(t.Context(), ours, "kept"); err != nil {
			t.Error(err)
		}
	})
	t.Run("must answer", func(t *testing.T) {
		if err := ours.Stop(); err != nil {
			t.Fatal(err)
		}
		t.Setenv(testengines.PostgresEnv, ours.Addr)
		e, err := testengines.Postgres(t.Context(), t.TempDir(), discard)
		if err == nil {
			t.Fatalf("got %v", e)
		}
		if !strings.Contains(err.Error(), testengines.PostgresEnv) {
			t.Errorf("the error does not name %s: %v", testengines.PostgresEnv, err)
		}
		if _, secret, _ := strings.Cut(ours.Addr, "linkstream:"); strings.Contains(err.Error(), secret[:26]) {
			t.Errorf("the error holds the password: %v", err)
		}
	})
}
