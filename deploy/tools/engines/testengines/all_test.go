package testengines_test

import (
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
}
