package ingestservice_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

// The store has counted clicks before the service starts: some of a lane are missing, some of another one are there
// twice.
func TestMetricsOfTheBalance(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	batch := new(schema.ClickBatch)
	storetest.NewTraffic().Fill(batch, 0, 10)
	for i := range batch.Lane {
		batch.Lane[i], batch.Seq[i] = schema.Lane{Number: uint32(i % 2)}, uint64(i/2+1)
	}
	batch.Seq[8], batch.Seq[9] = 12, 1 // 5 to 11 are missing in lane 0; lane 1 has 5 clicks and 4 numbers
	testkit.Must(t, store.InsertClicks(t.Context(), batch))
	r := start(t, store, streamtest.StartBroker(t).CreateTopics(1))
	testkit.Succeeds(t, func() error {
		var text bytes.Buffer
		r.Metrics().WritePrometheus(&text)
		for _, line := range []string{"linkstream_ingest_uncounted_clicks 7\n", "linkstream_ingest_recounted_clicks 1\n"} {
			if !strings.Contains(text.String(), line) {
				return fmt.Errorf("no %q in\n%s", line, text.String())
			}
		}
		return nil
	})
	r.stop()
	r.awaitEnd(t)
}
