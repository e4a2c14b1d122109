package dashboard

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"linkstream/api/clickreport"
	"linkstream/schema"
)

// counter is the clicks of some days, compared with the same number of days before.
type counter struct {
	Label   string
	Sum     schema.Period
	Prior   schema.Period // the time before
	Against string        // describes the time before
	Missing string        // names the time before, which has no data

	Series   []clickreport.Count // the time before by the periods of a report; nil if there are several reports
	Visitors *int64              // in the time before; nil if they are not known
	Compared bool                // the account and its links existed in the days before
}

// compare compares counters with the time before, or with the year before. counters have the sums of reports of the
// same links, nil for all, with the same filter. The links exist since a time. Every page compares by this function.
func (d *Dashboard) compare(
	ctx context.Context, c *call, links []int64, byYear bool, since time.Time, counters []counter,
	reports ...clickreport.Request,
) error {
	compared, err := clickreport.Compare(ctx, d.Clicks, c.account.ID, links, byYear, c.now(), reports...)
	if err != nil {
		return ofClicks(err)
	}
	for i, with := range compared {
		days := reports[i].Days()
		counter := &counters[i]
		counter.Prior, counter.Series, counter.Visitors, counter.Missing = with.Clicks, with.Series, with.Visitors, "period"
		switch {
		case byYear:
			counter.Missing = "year"
			counter.Against = "a year before"
		case days == 1 && with.Part:
			counter.Against = "yesterday"
		default:
			counter.Against = "in the previous " + periodOf(days)
		}
		if with.Part {
			counter.Against += ", up to the same time"
		}
		counter.Compared = !c.account.CreatedAt.After(with.From) && (counter.Before() > 0 || !since.After(with.From))
	}
	return nil
}

// beside returns days with the clicks of the time before, as far as they are known.
func (c counter) beside(days []dayClicks) []dayClicks {
	for i := range min(len(c.Series), len(days)) {
		if c.Compared {
			days[i].Before = &c.Series[i]
		}
	}
	return days
}

// periodOf names a number of days.
func periodOf(days int) string {
	if days == 1 {
		return "day"
	}
	return counted(int64(days), "day", "days")
}

// minCompared is the number of clicks from which on a percentage of them says something.
const minCompared = 10

// Before returns the clicks of the time before.
func (c counter) Before() int64 { return c.Prior.Total() }

// Change returns by how much the clicks grew or shrank, "" if that cannot be said.
func (c counter) Change() string { return c.change(c.Sum.Total(), c.Before()) }

// change is the only function that says how a figure differs from the time before.
func (c counter) change(now, before int64) string {
	if !c.Compared || before < minCompared {
		return ""
	}
	change := math.Round(100 * float64(now-before) / float64(before))
	switch {
	case change >= 1000:
		return "×" + strconv.FormatInt(now/before, 10)
	case change > 0:
		return fmt.Sprintf("+%.0f%%", change)
	case change < 0:
		return fmt.Sprintf("−%.0f%%", -change)
	}
	return "±0%"
}

// share is a name with its count and its percentage.
type share struct {
	Name  string
	Total int64
	Part  float64 // 0 to 100
	Bots  bool
	Field string // that the query has if the row is chosen; "" if it cannot be
	Value string // of the field
	By    string // dimension of a name; "" otherwise
	Raw   string // name as it is stored

	Within []share // names that the row has together, and how many more there are
	More   int
}

func newShare(name string, total, all int64) share {
	return share{Name: name, Total: total, Part: 100 * float64(total) / float64(max(1, all))}
}

// dayClicks is the clicks of a day, or of another unit of a chart.
type dayClicks struct {
	Date string // 2006-01-02
	clickreport.Count
	Before *clickreport.Count // in the time that it is compared with; nil if it is not known
}

// readDays reads a report by day from first, in its zone, to today. The clocks of edges differ, so a day of clicks is
// added after today.
func readDays(
	ctx context.Context, reports schema.ReportStore, q schema.ReportQuery, first, now time.Time,
) ([]dayClicks, schema.Report, error) {
	var names []string
	zone := first.Location()
	all := clickreport.Request{From: clickreport.DateOf(first), To: clickreport.DateOf(now.In(zone)).AddDate(0, 0, 1),
		Zone: zone}
	for _, at := range all.Bounds() {
		q.Bounds, names = append(q.Bounds, clickreport.Bound(at)), append(names, at.Format(time.DateOnly))
	}
	q.Previous = q.Bounds[0].AddDate(0, 0, -1) // nothing is compared
	got, err := reports.Report(ctx, q)
	if err != nil {
		return nil, got, err
	}
	days := make([]dayClicks, len(got.Series))
	for i, clicks := range got.Series {
		days[i] = dayClicks{Date: names[i], Count: clickreport.Count{Period: clicks}}
	}
	if days[len(days)-1].Total() == 0 {
		days = days[:len(days)-1]
	}
	return days, got, nil
}

func sumOf(days []dayClicks) (s schema.Period) {
	for _, day := range days {
		s.Add(day.Period)
	}
	return s
}

// progress says up to when clicks are counted, in words.
type progress struct {
	clickreport.Progress
	now time.Time // in the zone of the page
}

func (d *Dashboard) progress(c *call) progress {
	return progress{d.Lag.Progress(c.ctx), c.now()}
}

// clock formats a time for people in the zone of now, with the date unless it is today.
func clock(at, now time.Time) string {
	if at = at.In(now.Location()); clickreport.DateOf(at).Equal(clickreport.DateOf(now)) {
		return at.Format("15:04:05")
	}
	return at.Format("2 Jan 2006, 15:04:05")
}

// clicksTimeout bounds how long a page waits for clicks that it can do without.
const clicksTimeout = 3 * time.Second

// storeError names the store that failed. Without it, explain assumes the link store.
type storeError struct {
	store string
	error
}

func (e *storeError) Unwrap() error { return e.error }

// ofClicks marks a non-nil error as one of the click store.
func ofClicks(err error) error {
	if err == nil {
		return nil
	}
	return &storeError{"click store", err}
}

// warnWithout logs that a page lacks its clicks, unless the account itself has too much under way.
func (d *Dashboard) warnWithout(page string, err error) {
	if schema.ErrorCode(err) != schema.CodeBusy {
		d.Log.Warn("page without clicks", "page", page, "error", err)
	}
}

// Stamp formats UpTo for programs.
func (p progress) Stamp() string { return p.UpTo.Format(time.RFC3339) }

// Clock formats UpTo for people.
func (p progress) Clock() string { return clock(p.UpTo, p.now) }

// Wait describes how many clicks wait.
func (p progress) Wait() string { return counted(p.Waiting, "click to go", "clicks to go") }

// State returns the CSS class.
func (p progress) State() string {
	switch {
	case !p.Known:
		return "unknown"
	case p.Waiting > 0:
		return "behind"
	}
	return "now"
}

// Width returns the share as an SVG length.
func (s share) Width() string { return strconv.FormatFloat(s.Part, 'f', 1, 64) + "%" }

// Percent formats the share. Only 0 prints as 0% and only 100 as 100%.
func (s share) Percent() string {
	switch {
	case s.Part > 0 && s.Part < 1:
		return "<1%"
	case s.Part > 99 && s.Part < 100:
		return ">99%"
	}
	return strconv.FormatFloat(s.Part, 'f', 0, 64) + "%"
}

// newCounter counts the last n days, today included, as far as they are among days.
func newCounter(label string, days []dayClicks, now time.Time, n int) counter {
	c, today := counter{Label: label}, clickreport.DateOf(now)
	first, last := today.AddDate(0, 0, 1-n).Format(time.DateOnly), today.Format(time.DateOnly)
	for _, day := range days {
		if day.Date >= first && day.Date <= last {
			c.Sum.Add(day.Period)
		}
	}
	return c
}
