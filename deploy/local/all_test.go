package local_test

import (
	"strings"
	"testing"

	"linkstream/deploy/local"
)

func TestAllEnginesAreFoundByTheirEnvironment(t *testing.T) {
	for _, name := range []string{local.PostgresEnv, local.KafkaEnv, local.ClickHouseEnv, local.ClickHouseHTTPEnv} {
		t.Setenv(name, "")
	}
	all, err := local.StartAll(t.Context(), t.TempDir(), discard)
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
	for _, ours := range all.Engines() {
		e, err := starters[ours.Name](t.Context(), t.TempDir(), discard)
		if err != nil {
			t.Fatal(err)
		}
		if e.Addr != ours.Addr || e.HTTPAddr != ours.HTTPAddr || !strings.HasPrefix(e.Source, "LINKSTREAM_TEST_") {
			t.Errorf("got %v, want that of %v", e, ours)
		}
	}
}
