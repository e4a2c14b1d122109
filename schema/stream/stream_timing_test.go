package stream_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

// clickLike returns n values of 150 bytes that compress about as well as clicks.
func clickLike(n int) *stream.Batch {
	agents := make([]string, 50)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range agents {
		agents[i] = fmt.Sprintf("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.0.0 Safari/537.36", i)
	}
	b := new(stream.Batch)
	b.Reset(epoch)
	for range n {
		head := fmt.Appendf(nil, "%016x%016x", random.Uint64(), random.Uint64())
		b.Append(head, fmt.Appendf(nil, "%-118s", agents[random.IntN(len(agents))])[:118])
	}
	return b
}

var batchSizes = []int{10, 100, 1000, 5000}

func BenchmarkProduce(b *testing.B) {
	for _, size := range batchSizes {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			client := streamtest.StartBroker(b).CreateTopics(1)
			source, batch := clickLike(size), new(stream.Batch)
			b.ReportAllocs()
			b.SetBytes(150)
			b.ResetTimer()
			for sent := 0; sent < b.N; sent += size {
				batch.Reset(epoch)
				for i := range size {
					batch.Append(source.Value(i), nil)
				}
				testkit.Must(b, client.Produce(b.Context(), 0, batch))
			}
		})
	}
}

func BenchmarkFetch(b *testing.B) {
	for _, size := range batchSizes {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			const records = 100_000
			client := streamtest.StartBroker(b).CreateTopics(1)
			batch := clickLike(size)
			for sent := 0; sent < records; sent += size {
				testkit.Must(b, client.Produce(b.Context(), 0, batch))
			}
			b.ReportAllocs()
			b.SetBytes(150)
			b.ResetTimer()
			for read, next := 0, int64(0); read < b.N; {
				if next >= records {
					next = 0
				}
				if _, err := client.Fetch(b.Context(), 0, next, time.Second, func(r stream.Record) error {
					next = r.Offset + 1
					read++
					return nil
				}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
