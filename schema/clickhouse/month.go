package clickhouse

import (
	"time"

	"linkstream/schema"
)

// The table is partitioned by month: the month of a batch's Time, such as 202611, or lateMonths + the month of the
// insert if the batch is so late that the month is closed. So a month does not change any more when it is compacted,
// except by compaction itself.
//
// A token fences inserts of one month only. So a worker decides by the server's clock, like the constraint
// month_is_open, and inserts a late batch only some time after the other month was closed: by then, an insert of
// another worker into that one has ended.
const (
	openDays    = 100             // after its last day, as in month_is_open
	closeMargin = 5 * time.Minute // from the time when a month is closed to the insert of late batches elsewhere
	lateMonths  = 1_000_000
)

// monthOf returns the month of t in UTC, such as 202611.
func monthOf(t time.Time) uint32 {
	t = t.UTC()
	return uint32(t.Year()*100 + int(t.Month()))
}

// closedBefore returns the first month that is open for inserts at a time.
func closedBefore(now time.Time) uint32 { return monthOf(now.UTC().AddDate(0, 0, -openDays)) }

// insertMonth returns the month for the rows of a batch with this Time. CodeUnavailable for some minutes after the one
// that it would have got was closed.
func insertMonth(of, now time.Time) (uint32, error) {
	month, earlier := monthOf(of), now.Add(-closeMargin)
	if month >= closedBefore(now) {
		return month, nil
	}
	if month >= closedBefore(earlier) || monthOf(earlier) != monthOf(now) {
		return 0, schema.Errorf(schema.CodeUnavailable, "month %d is closed for inserts, late clicks are inserted %v later",
			month, closeMargin)
	}
	return lateMonths + monthOf(now), nil
}
