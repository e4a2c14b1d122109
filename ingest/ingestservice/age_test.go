package ingestservice_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

// oldestClick returns the metric of the oldest click's age.
func (r *running) oldestClick(t *testing.T) (age time.Duration) {
	t.Helper()
	var text bytes.Buffer
	r.Metrics().WritePrometheus(&text)
	for line := range strings.Lines(text.String()) {
		var seconds float64
		if n, _ := fmt.Sscanf(line, "linkstream_ingest_oldest_click_seconds %g", &seconds); n == 1 {
			return time.Duration(seconds * float64(time.Second))
		}
	}
	t.Fatal("no metric")
	return 0
}

// A store accepts nothing for days. Nothing fails, but the topic is about to delete clicks.
func TestReadySaysThatClicksAreAboutToBeLost(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour // the topic keeps clicks for 7 days
	for age, ready := range map[time.Duration]bool{3 * day: true, 4 * day: false} {
		t.Run(age.String(), func(t *testing.T) {
			t.Parallel()
			client := streamtest.StartBroker(t).CreateTopics(1)
			store := &blockingStore{PositionStore: openStore(t), began: make(chan struct{}),
				outcome: make(chan error)}
			var batch stream.Batch
			batch.Reset(time.Now().Add(-age))
			batch.Append(nil, schema.AppendClick(nil,
				&schema.Click{Lane: schema.Lane{Number: 1}, Seq: 1, LinkID: link, ClickedAt: time.Now()}))
			testkit.Must(t, client.Produce(t.Context(), 0, &batch))
			r := start(t, store, client)
			<-store.began
			testkit.Eventually(t, "the age is measured", func() bool { return r.oldestClick(t) > 0 })
			if got := r.oldestClick(t); got < age || got > age+time.Hour {
				t.Errorf("the oldest click is %v old, want %v", got, age)
			}
			err := r.Ready(t.Context())
			if ready != (err == nil) || !ready && !strings.Contains(err.Error(), "is lost after 168h") {
				t.Errorf("error %v", err)
			}
			store.outcome <- nil
			testkit.Succeeds(t, func() error { return r.Ready(t.Context()) })
			testkit.Eventually(t, "every click is counted", func() bool { return r.oldestClick(t) == 0 })
			r.stop()
			r.awaitEnd(t)
		})
	}
}
