package main

import (
	"log/slog"
	"reflect"
	"testing"

	"linkstream/schema/testkit"
)

// An acknowledged click leaves the spool, so it must be on the disk by then. No program can see whether another one has synced
// a file, so the test reads the broker's own settings.
func TestBrokerSyncsWrites(t *testing.T) {
	broker, err := startBroker(t.TempDir(), "secret", slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	defer broker.Close()
	settings := reflect.ValueOf(broker).Elem().FieldByName("cfg")
	testkit.Equal(t, "syncs writes", settings.FieldByName("syncWrites").Bool(), true)
	testkit.Equal(t, "keeps data", settings.FieldByName("dataDir").String() != "", true)
}
