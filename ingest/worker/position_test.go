package worker_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

// Releases before log epochs stored positions without the last counted click.
func TestPositionsOfEarlierReleases(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*testing.T, *streamtest.Broker) *stream.Client // the log between the releases; nil: none
		want   int64                                               // clicks in the end
		epochs int
	}{
		"the log is the one that was counted": {want: 60},
		"the log was replaced by a longer one": {
			change: func(t *testing.T, broker *streamtest.Broker) *stream.Client {
				testkit.Must(t, broker.DeleteTopic(stream.DefaultConfig().Clicks))
				client := broker.CreateTopics(1)
				produce(t, client, 0, encoded(lane(3), 1, 50)...)
				return client
			},
			want: 30 + 50 + 30, epochs: 1,
		},
		"the log lost its end, and a lane that has been quiet since is in the rest": {
			change: func(t *testing.T, broker *streamtest.Broker) *stream.Client {
				broker.Stop()
				testkit.Must(t, truncateAfterFirstBatch(broker.Dir))
				broker.Start()
				return nil
			},
			want: 60, epochs: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := streamtest.StartBroker(t)
			client, path := broker.CreateTopics(1), filepath.Join(t.TempDir(), "clicks.db")
			clicks := encoded(lane(1), 1, 55)
			produce(t, client, 0, encoded(lane(2), 1, 5)...)
			produce(t, client, 0, clicks[:25]...)
			produce(t, client, 0, clicks[20:25]...) // repeated
			store := openStoreAt(t, path)
			first := start(t, quick(), client, store)
			awaitTotal(t, store, 30)
			first.stop()
			testkit.Close(t, store)
			forgetLastClicks(t, path)

			if c.change != nil {
				if changed := c.change(t, broker); changed != nil {
					client = changed
				}
			}
			produceAt(t, client, noon, clicks[25:]...)
			store = openStoreAt(t, path)
			t.Cleanup(func() { testkit.Close(t, store) })
			second := start(t, quick(), client, store)
			awaitTotal(t, store, c.want)
			second.wantMetrics(map[string]int{"log_epochs_total": c.epochs, "clicks_missing_total": 0})
			if alarmed := second.log.Contains("level=ERROR"); alarmed != (c.epochs > 0) {
				t.Errorf("the log has an error: %v\n%s", alarmed, second.log.String())
			}
		})
	}
}

// forgetLastClicks leaves out what earlier releases did not store.
func forgetLastClicks(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	testkit.Must(t, err)
	defer testkit.Close(t, db)
	_, err = db.ExecContext(t.Context(), `UPDATE positions SET last_offset = -1, incarnation = x'', lane = 0`)
	testkit.Must(t, err)
}
