package ingestservice_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/ingest/ingestservice"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// scriptedStore returns outcomes, in their order.
type scriptedStore struct {
	outcomes []error
	calls    []time.Time
}

func (s *scriptedStore) Compact(context.Context) ([]schema.CompactedMonth, error) {
	outcome := s.outcomes[len(s.calls)]
	s.calls = append(s.calls, time.Now())
	return []schema.CompactedMonth{{Month: 202501, RowsBefore: 1000, RowsAfter: 10}}, outcome
}

func TestCompactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &scriptedStore{outcomes: []error{nil, errors.New("the disk is full"), nil, nil}}
		set, log := metrics.NewSet(), new(testkit.Buffer)
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		go ingestservice.RunCompactions(ctx, store, log.Logger(), set)
		time.Sleep(3*24*time.Hour + 30*time.Minute)
		cancel()
		synctest.Wait()
		testkit.Equal(t, "runs", len(store.calls), 4)
		if first := store.calls[0].Sub(began); first > 10*time.Minute {
			t.Errorf("the first run is after %v", first)
		}
		for i, want := range []time.Duration{24 * time.Hour, time.Hour, 24 * time.Hour} {
			testkit.Equal(t, "time to the next run", store.calls[i+1].Sub(store.calls[i]), want)
		}
		var text bytes.Buffer
		set.WritePrometheus(&text)
		for _, line := range []string{
			"linkstream_ingest_compaction_failures_total 1", "linkstream_ingest_compacted_months_total 4",
			"linkstream_ingest_compacted_rows_before_total 4000", "linkstream_ingest_compacted_rows_after_total 40",
		} {
			if !strings.Contains(text.String(), line+"\n") {
				t.Errorf("no %s in\n%s", line, &text)
			}
		}
		if n := strings.Count(log.String(), "the disk is full"); n != 1 {
			t.Errorf("%d failures are logged: %s", n, log)
		}
	})
}
