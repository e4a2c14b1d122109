package clickhouse_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"

	"linkstream/schema"
	"linkstream/schema/clickhouse"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// TestNamesOfAColumn reads columns by clickhouse-go, which sends them as it has read them.
func TestNamesOfAColumn(t *testing.T) {
	t.Parallel()
	for _, distinct := range []int{1, 2, 255, 256, 257, 65_535, 65_536, 65_537} {
		t.Run(fmt.Sprintf("%d distinct names", distinct), func(t *testing.T) {
			t.Parallel()
			names := make([]string, distinct+1000)
			for i := range names {
				if n := i % distinct; n > 0 { // the first one is empty
					names[i] = fmt.Sprint("name ", n)
				}
			}
			read := newColumn(t)
			testkit.Must(t, read.Decode(proto.NewReader(bytes.NewReader(clickhouse.EncodeNames(names))), len(names)))
			wantNames(t, read, names)
			sent, again := new(proto.Buffer), newColumn(t)
			read.Encode(sent)
			testkit.Must(t, again.Decode(proto.NewReader(bytes.NewReader(sent.Buf)), len(names)))
			wantNames(t, again, names)
		})
	}
}

func newColumn(t testing.TB) column.Interface {
	t.Helper()
	c, err := column.Type("LowCardinality(String)").Column("name", new(column.ServerContext))
	testkit.Must(t, err)
	return c
}

func wantNames(t *testing.T, c column.Interface, want []string) {
	t.Helper()
	got := make([]string, c.Rows())
	for i := range got {
		got[i] = c.Row(i, false).(string)
	}
	if !slices.Equal(got, want) { // testkit.Equal takes seconds for this many
		t.Fatalf("%d names differ from the %d of the batch", len(got), len(want))
	}
}

// BenchmarkNames encodes a column of names, and alternates with a loop that leaves this to clickhouse-go. The metric
// ratio is our time divided by the time of clickhouse-go.
func BenchmarkNames(b *testing.B) {
	batch := new(schema.ClickBatch)
	storetest.NewTraffic().Fill(batch, 0, 100_000)
	for name, names := range map[string][]string{"browsers": batch.Browser, "referrers": batch.Referrer} {
		values := make([]any, len(names))
		for i, name := range names {
			values[i] = name
		}
		b.Run(name, func(b *testing.B) {
			var ours, theirs time.Duration
			for b.Loop() {
				begin := time.Now()
				column := newColumn(b)
				testkit.Must(b, column.Decode(proto.NewReader(bytes.NewReader(clickhouse.EncodeNames(names))), len(names)))
				column.Encode(new(proto.Buffer))
				middle := time.Now()
				column = newColumn(b)
				_, err := column.Append(values)
				testkit.Must(b, err)
				column.Encode(new(proto.Buffer))
				ours += middle.Sub(begin)
				theirs += time.Since(middle)
			}
			b.ReportMetric(float64(ours.Nanoseconds())/float64(b.N*len(names)), "ns/name")
			b.ReportMetric(float64(ours)/float64(theirs), "ratio")
		})
	}
}
