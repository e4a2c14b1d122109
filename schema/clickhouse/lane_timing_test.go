package clickhouse_test

import (
	"fmt"
	"testing"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// BenchmarkLanes reads the position and marks of a partition that has counted clicks of many process starts, with two lanes
// each, in as many parts as a year has after merges.
func BenchmarkLanes(b *testing.B) {
	for _, starts := range []int{1_000, 1_000_000} {
		dsn := engines.ClickHouse(b)
		store, raw := openClicks(b, dsn), openRaw(b, dsn)
		const months = 12
		for month := range months {
			exec(b, raw, fmt.Sprintf(`INSERT INTO clicks (link_id, clicked_at, kafka_partition, kafka_offset, kafka_next, incarnation, lane, seq,
					month, weight, lane_clicks)
				SELECT 0, 0, 0, number + %[1]d, number + %[1]d + 1, reinterpretAsFixedString(sipHash128(intDiv(number, 2), %[1]d)), number %% 2,
					1000, %[2]d, 0, 1000 FROM numbers(%[3]d)`, month*starts, 202501+month, starts*2/months))
		}
		var incarnation string
		testkit.Must(b, raw.QueryRow(b.Context(), "SELECT incarnation FROM clicks WHERE lane = 1 LIMIT 1").Scan(&incarnation))
		lane := schema.Lane{Number: 1}
		copy(lane.Incarnation[:], incarnation)
		for name, read := range map[string]func() error{
			"Position":  func() error { _, err := store.Position(b.Context(), 0); return err },
			"LaneMarks": func() error { _, err := store.LaneMarks(b.Context(), []schema.Lane{lane}); return err },
		} {
			b.Run(fmt.Sprintf("%s/starts=%d", name, starts), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					testkit.Must(b, read())
				}
			})
		}
		b.Logf("%d starts: %d bytes on disk", starts, number(b, raw, bytesOnDisk))
	}
}
