//go:build !engines

package e2e_test

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/deploy/test/launch"
	"linkstream/ingest/count"
	"linkstream/schema/sqlite"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

func suite(m *testing.M) launch.Runner { return m }

// startSystem starts a new standalone. settings are variables.
func startSystem(t *testing.T, settings ...string) *system {
	t.Helper()
	return startStandalone(t, settings...)
}

// startAnother returns standalone itself, which is each service, and its base URL for visitors.
func (s *system) startAnother(t *testing.T, service string) (p *program, base string) {
	t.Helper()
	if service == "api" {
		return s.programs[0], s.api
	}
	return s.programs[0], s.edge
}

// TestWebhooksOfClicks kills standalone three times.
func TestWebhooksOfClicks(t *testing.T) {
	t.Parallel()
	s := startSystem(t, webhooksAllowed)
	testWebhooksOfClicks(t, s, func(t *testing.T) {
		for range 3 {
			s.killEach(t)
		}
	})
}

// produce records clicks in the click store, as a shipper does.
func (s *system) produce(t *testing.T, batch *stream.Batch) {
	t.Helper()
	store, err := sqlite.OpenClickStore(t.Context(), filepath.Join(s.data, "clicks.db"))
	testkit.Must(t, err)
	defer testkit.Close(t, store)
	writer := count.NewWriter(store, nil, nil, slog.New(slog.DiscardHandler), metrics.NewSet())
	testkit.Must(t, writer.Produce(t.Context(), 0, batch))
}
