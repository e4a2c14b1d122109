//go:build deploy

package outside_test

import (
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"linkstream/deploy/tools/engines/enginetest"
	"linkstream/schema"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

// TestConsumers has the programs that the manual recommends count a topic in which records are repeated.
func TestConsumers(t *testing.T) {
	t.Parallel()
	cfg := stream.DefaultConfig()
	cfg.Brokers, cfg.Clicks, cfg.Dead, cfg.Changes = engines.Kafka(t), enginetest.Name(), enginetest.Name(),
		enginetest.Name()
	client, err := stream.New(cfg, slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	t.Cleanup(client.Close)
	testkit.Must(t, client.EnsureTopics(t.Context()))
	want := produceRepeatedly(t, client, cfg.Partitions)

	program := filepath.Join(t.TempDir(), "consumer")
	runIn(t, ".", nil, "go", "build", "-o", program, "testdata/consumers/consumer.go")
	for name, command := range map[string][]string{"Go": {program},
		"Python": {python(t), "testdata/consumers/consumer.py"}} {
		t.Run(name, func(t *testing.T) {
			out := run(t, command[0], append(command[1:], strings.Split(cfg.Brokers, ",")[0], cfg.Clicks)...)
			var got map[string]int
			testkit.Must(t, json.Unmarshal([]byte(out), &got))
			testkit.Equal(t, "clicks by link", got, want)
		})
	}
}

// produceRepeatedly fills all partitions but the last one with batches of several lanes, some of which come again whole
// or in part, as after a lost acknowledgement. It returns the clicks of each link.
func produceRepeatedly(t *testing.T, client *stream.Client, partitions int) map[string]int {
	t.Helper()
	want, random := map[string]int{}, rand.New(rand.NewPCG(1, 2))
	for number := range 3 * (partitions - 1) {
		lane := schema.Lane{Incarnation: schema.Incarnation{byte(number / 2)}, Number: uint32(number % 2)}
		produce := func(first, last uint64) {
			batch := new(stream.Batch)
			batch.Reset(time.Now())
			for seq := first; seq <= last; seq++ {
				click := schema.Click{Lane: lane, Seq: seq, LinkID: int64(1 + (seq+uint64(number))%7), AccountID: 1,
					ClickedAt: time.Now(),
					UserAgent: []byte("Firefox"), Language: []byte("de")}
				batch.Append(nil, schema.AppendClick(nil, &click))
			}
			testkit.Succeeds(t, func() error { // the topic is new: its partitions may not have leaders yet
				return client.Produce(t.Context(), number%(partitions-1), batch)
			})
		}
		for first := uint64(1); first < 500; {
			last := first + random.Uint64N(60)
			for seq := first; seq <= last; seq++ {
				want[strconv.FormatUint(1+(seq+uint64(number))%7, 10)]++
			}
			produce(first, last)
			if random.IntN(2) == 0 {
				produce(first+random.Uint64N(last-first+1), last)
			}
			first = last + 1
		}
	}
	return want
}
