package stream_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

func TestBatchesRoundTrip(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 300_000)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	var values [][]byte
	for i := range 1000 { // compressible and not, of lengths whose varints take one, two and three bytes
		values = append(values, bytes.Repeat([]byte{byte(i)}, i%200), noise[i*100:i*100+i%300])
	}
	values = append(values, noise, nil)
	broker := streamtest.StartBroker(t)
	broker.CreateTopics(1)
	client := streamtest.NewClient(t, broker.Config(1))
	var batch stream.Batch
	for round := range 3 { // the second reuses the memory of the first, the third is empty
		at := epoch.Add(time.Duration(round) * time.Minute)
		batch.Reset(at)
		for _, v := range values[:[]int{len(values), 7, 0}[round]] {
			batch.Append(nil, v)
		}
		testkit.Must(t, client.Produce(t.Context(), 0, &batch))
	}
	want := append(values[:len(values):len(values)], values[:7]...)
	for got := 0; got < len(want); {
		if _, err := client.Fetch(t.Context(), 0, int64(got), time.Second, func(r stream.Record) error {
			if r.Offset < int64(got) { // a fetch may start earlier
				return nil
			}
			at := epoch
			if got >= len(values) {
				at = epoch.Add(time.Minute)
			}
			if r.Offset != int64(got) || !bytes.Equal(r.Value, want[got]) || !r.Time.Equal(at) {
				t.Fatalf("record %d: got %.20q, time %v, offset %d", got, r.Value, r.Time, r.Offset)
			}
			got++
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}
