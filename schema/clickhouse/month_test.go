//go:build engines

package clickhouse_test

import (
	"fmt"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/clickhouse"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func TestInsertMonth(t *testing.T) {
	at := func(s string) time.Time {
		t.Helper()
		parsed, err := time.Parse("2006-01-02 15:04", s)
		testkit.Must(t, err)
		return parsed
	}
	for _, c := range []struct {
		of, now string
		want    uint32 // 0: unavailable
	}{
		{"2026-11-21 00:00", "2026-11-21 00:00", 202611},
		{"2026-10-31 23:59", "2026-11-01 00:00", 202610},
		{"2027-01-01 00:00", "2026-12-31 23:30", 202701},
		{"2026-08-01 00:00", "2026-12-09 23:59", 202608}, // 100 days before is 31 August
		{"2026-08-31 23:59", "2026-12-10 00:00", 0},
		{"2026-08-31 23:59", "2026-12-10 00:04", 0},
		{"2026-08-31 23:59", "2026-12-10 00:05", clickhouse.LateMonths + 202612},
		{"2026-08-31 23:59", "2026-12-31 23:59", clickhouse.LateMonths + 202612},
		{"2026-08-31 23:59", "2027-01-01 00:04", 0},
		{"2026-08-31 23:59", "2027-01-01 00:05", clickhouse.LateMonths + 202701},
		{"0001-01-01 00:00", "2026-11-21 00:00", clickhouse.LateMonths + 202611},
	} {
		got, err := clickhouse.InsertMonth(at(c.of), at(c.now))
		if got != c.want || (c.want == 0) != (schema.ErrorCode(err) == schema.CodeUnavailable) {
			t.Errorf("clicks of %s at %s: month %d, error %v, want %d", c.of, c.now, got, err, c.want)
		}
	}
}

// TestClosedMonths inserts rows that expire, as workers do, and copies rows, as operators do.
func TestClosedMonths(t *testing.T) {
	t.Parallel()
	dsn := engines.ClickHouse(t)
	store, raw := openClicks(t, dsn), openRaw(t, dsn)
	now, late := time.Now().UTC(), uint32(clickhouse.LateMonths)
	open := now.AddDate(0, 0, -100) // its month is the oldest one
	this, closed := clickhouse.MonthOf(now), clickhouse.MonthOf(open.AddDate(0, 0, -open.Day()))
	for _, c := range []struct {
		month    uint32
		accepted bool
	}{
		{this, true}, {clickhouse.MonthOf(open.AddDate(0, 0, 1)), true}, {clickhouse.MonthOf(now.AddDate(0, 3, 0)), true},
		{closed, false}, {197001, false}, {0, false}, {late + this, true}, {late + closed, false}, {late + this + 1, false},
	} {
		insert := fmt.Sprintf("INSERT INTO clicks (kafka_partition, month, insert_before) SELECT 9, %d, now() + 10", c.month)
		if err := raw.Exec(t.Context(), insert); (err == nil) != c.accepted {
			t.Errorf("insert into month %d: error %v", c.month, err)
		}
		exec(t, raw, fmt.Sprintf("INSERT INTO clicks (kafka_partition, month) SELECT 9, %d", c.month))
	}

	batch, source := new(schema.ClickBatch), storetest.NewTraffic()
	for _, day := range []time.Time{now.AddDate(-2, 0, 0), now, now.AddDate(0, -7, 0)} { // late, not late, late
		source.Day = day
		source.Fill(batch, 0, 10)
		insert(t, store, batch)
		testkit.WantCode(t, store.InsertClicks(t.Context(), batch), schema.CodeConflict)
	}
	wantRows(t, raw, 0, 30)
	testkit.Equal(t, "late clicks",
		number(t, raw, fmt.Sprintf("SELECT count() FROM clicks WHERE kafka_partition = 0 AND month = %d", late+this)), 20)
}
