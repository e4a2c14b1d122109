package dashboard

import (
	"time"

	"linkstream/api/clickreport"
)

// progress says up to when clicks are counted, in words.
type progress struct {
	clickreport.Progress
	now     time.Time // in the zone of the page
	numbers numbers
}

func (d *Dashboard) progress(c *call) progress {
	return progress{d.Lag.Progress(c.ctx), c.now(), c.numbers()}
}

// Stamp formats UpTo for programs.
func (p progress) Stamp() string { return p.UpTo.Format(time.RFC3339) }

// Clock formats UpTo for people.
func (p progress) Clock() string { return clock(p.UpTo, p.now) }

// clock formats a time for people in the zone of now, with the date unless it is today.
func clock(at, now time.Time) string {
	if at = at.In(now.Location()); clickreport.DayOf(at).Equal(clickreport.DayOf(now)) {
		return at.Format("15:04:05")
	}
	return at.Format("2 Jan 2006, 15:04:05")
}

// Wait describes how many clicks wait.
func (p progress) Wait() string { return p.numbers.counted(p.Waiting, "click to go", "clicks to go") }

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
