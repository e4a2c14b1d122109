package stream_test

import (
	"fmt"
	"testing"
	"time"

	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

// shortWait is the wait of a fetch that finds no record.
const shortWait = 50 * time.Millisecond

var epoch = time.UnixMilli(1_750_000_000_123)

// batchOf returns a batch of values.
func batchOf(values ...string) *stream.Batch {
	b := new(stream.Batch)
	b.Reset(epoch)
	for _, v := range values {
		b.Append(nil, []byte(v))
	}
	return b
}

// numbered returns the values prefix-0 to prefix-(n-1).
func numbered(prefix string, n int) []string {
	values := make([]string, n)
	for i := range values {
		values[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return values
}

func produce(t testing.TB, client *stream.Client, partition int, values ...string) {
	t.Helper()
	testkit.Must(t, client.Produce(t.Context(), partition, batchOf(values...)))
}

// fetch returns n records from offset on, in any number of fetches. Their offsets must be dense.
func fetch(t testing.TB, client *stream.Client, partition int, offset int64, n int) []string {
	t.Helper()
	var values []string
	next := offset
	for len(values) < n {
		before := len(values)
		_, err := client.Fetch(t.Context(), partition, next, time.Second, func(r stream.Record) error {
			if r.Offset != next {
				t.Fatalf("got offset %d, want %d", r.Offset, next)
			}
			values = append(values, string(r.Value))
			next++
			return nil
		})
		testkit.Must(t, err)
		if len(values) == before {
			t.Fatalf("got %d of %d records", before, n)
		}
	}
	return values
}
