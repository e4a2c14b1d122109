package stream_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"linkstream/schema/stream"
)

func TestBatch(t *testing.T) {
	t.Run("the zero value is empty", func(t *testing.T) {
		var b stream.Batch
		if b.Len() != 0 || b.Size() != 0 {
			t.Fatalf("got %d values, %d bytes", b.Len(), b.Size())
		}
	})
	t.Run("a value is head and body, in the order of Append", func(t *testing.T) {
		var b stream.Batch
		b.Append([]byte("a"), []byte("bc"))
		b.Append(nil, nil)
		b.Append(nil, []byte("d"))
		b.Append([]byte("ef"), nil)
		for i, want := range []string{"abc", "", "d", "ef"} {
			if got := string(b.Value(i)); got != want {
				t.Errorf("value %d: got %q, want %q", i, got, want)
			}
		}
		if b.Len() != 4 || b.Size() != 6 {
			t.Errorf("got %d values, %d bytes; want 4, 6", b.Len(), b.Size())
		}
	})
	t.Run("Append copies its arguments", func(t *testing.T) {
		var b stream.Batch
		head, body := []byte("12"), []byte("34")
		b.Append(head, body)
		head[0], body[0] = 'x', 'x'
		if got := string(b.Value(0)); got != "1234" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("Reset empties the batch and sets the timestamp", func(t *testing.T) {
		var b stream.Batch
		b.Append(nil, []byte("old"))
		at := time.UnixMilli(1_700_000_000_123)
		b.Reset(at)
		b.Append(nil, []byte("new"))
		if b.Len() != 1 || string(b.Value(0)) != "new" || !b.Time.Equal(at) {
			t.Errorf("got %d values, first %q, time %v", b.Len(), b.Value(0), b.Time)
		}
	})
}

func TestAppendReusesMemory(t *testing.T) {
	var b stream.Batch
	head, body := make([]byte, 30), make([]byte, 120)
	fill := func() {
		b.Reset(time.Time{})
		for range 1000 {
			b.Append(head, body)
		}
	}
	fill()
	if allocs := testing.AllocsPerRun(100, fill); allocs != 0 {
		t.Errorf("got %v allocations per batch of 1000, want 0", allocs)
	}
	if !bytes.Equal(b.Value(999), make([]byte, 150)) {
		t.Error("the last value is wrong")
	}
}

// A producer builds a value from two parts, such as a click's identity and its body, and reuses the batch once the
// broker has acknowledged it.
func ExampleBatch() {
	var batch stream.Batch
	send := func(at time.Time, bodies ...string) {
		batch.Reset(at)
		for i, body := range bodies {
			batch.Append(fmt.Appendf(nil, "%d:", i+1), []byte(body))
		}
		fmt.Printf("%d values, %d bytes, the last is %s\n", batch.Len(), batch.Size(), batch.Value(batch.Len()-1))
		// client.Produce(ctx, partition, &batch) sends it.
	}
	send(time.Now(), "alpha", "beta")
	send(time.Now(), "gamma")
	// Output:
	// 2 values, 13 bytes, the last is 2:beta
	// 1 values, 7 bytes, the last is 1:gamma
}
