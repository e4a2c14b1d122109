package clickreport

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"linkstream/schema"
)

// Fields of a request, as they are called in queries. Filters have the names of their dimensions.
const (
	FieldFrom     = "from"
	FieldTo       = "to"
	FieldZone     = "tz"
	FieldInterval = "interval"
	FieldLimit    = "limit"
)

const (
	maxNameLen = 1000 // bytes of a filter, more than any name has
	maxZoneLen = 64
)

// Parse reads a report from the fields of a query. value returns a field, and whether it was given. now decides what
// the last days are. The problems of all fields are returned at once, by field, in words for the client.
func Parse(value func(field string) (string, bool), now time.Time) (r Request, problems map[string][]string) {
	p := parser{value: value, problems: map[string][]string{}}
	r.Zone = p.zone()
	r.Interval = Day
	if text, ok := value(FieldInterval); ok {
		if r.Interval = Interval(text); r.Interval != Day && r.Interval != Hour {
			p.problem(FieldInterval, "The interval must be day or hour.")
		}
	}
	r.Limit = DefaultTop
	if text, ok := value(FieldLimit); ok {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > MaxTop {
			p.problem(FieldLimit, fmt.Sprintf("The limit must be an integer from 1 to %d.", MaxTop))
		}
		r.Limit = n
	}
	p.days(&r, now)
	for _, by := range schema.Dimensions() {
		if name, ok := value(string(by)); ok {
			if problem := problemOfName(by, name); problem != "" {
				p.problem(string(by), problem)
			}
			if r.Filter == nil {
				r.Filter = map[schema.Dimension]string{}
			}
			r.Filter[by] = name
		}
	}
	return r, p.problems
}

type parser struct {
	value    func(string) (string, bool)
	problems map[string][]string
}

func (p *parser) problem(field, text string) { p.problems[field] = append(p.problems[field], text) }

// zone returns UTC if the zone is not valid.
func (p *parser) zone() *time.Location {
	text, ok := p.value(FieldZone)
	if !ok {
		return time.UTC
	}
	zone, ok := FindZone(text)
	if !ok {
		p.problem(FieldZone, "The time zone must be an IANA name, such as Europe/Berlin.")
		return time.UTC
	}
	return zone
}

// zoneName matches names in the form of the IANA database, whose parts begin with a capital. The database of a machine
// has other files: localtime and posixrules are the zone of the machine, posix/ and right/ hold copies, those in right/
// with leap seconds.
var zoneName = regexp.MustCompile(`^[A-Z][A-Za-z0-9_+-]*(/[A-Z][A-Za-z0-9_+-]*)*$`)

// FindZone returns the time zone with that name, if reports may be in it. It is the same on every machine: "Local" is
// the machine's zone, and "Factory" the zone of a machine that has none.
func FindZone(name string) (*time.Location, bool) {
	if name == "Local" || name == "Factory" || len(name) > maxZoneLen || !zoneName.MatchString(name) {
		return nil, false
	}
	zone, err := time.LoadLocation(name)
	return zone, err == nil
}

// days reads the range. Without from it has the last 30 days up to to.
func (p *parser) days(r *Request, now time.Time) {
	r.To = DateOf(now.In(r.Zone))
	given := p.day(FieldTo, &r.To)
	r.From = r.To.AddDate(0, 0, 1-DefaultDays)
	if p.day(FieldFrom, &r.From); len(p.problems[FieldFrom])+len(p.problems[FieldTo]) > 0 {
		return
	}
	switch n := r.Days(); {
	case n < 1 && given:
		p.problem(FieldTo, "The last day must not be before the first one.")
	case n < 1:
		p.problem(FieldFrom, "The first day must not be after today.")
	case n > MaxDays:
		p.problem(FieldFrom, fmt.Sprintf("A report has at most %d days.", MaxDays))
	case n > MaxHourDays && r.Interval == Hour:
		p.problem(FieldInterval, fmt.Sprintf("A report by hour has at most %d days.", MaxHourDays))
	}
}

// Years of reports: stores have no clicks outside of them, and the time before a report is not before 1970.
const firstYear, lastYear = 1990, 2099

// day reads a day into d, and reports whether it was given.
func (p *parser) day(field string, d *time.Time) bool {
	text, ok := p.value(field)
	if !ok {
		return false
	}
	day, err := time.Parse(time.DateOnly, text)
	if err != nil || day.Year() < firstYear || day.Year() > lastYear {
		p.problem(field, fmt.Sprintf("The day must be a date of the form YYYY-MM-DD, from %d to %d.", firstYear, lastYear))
	}
	*d = day
	return true
}

// details is the part of schema.ReportStore that CheckDetail needs.
type details interface {
	ReportDetail(context.Context) (schema.ReportDetail, error)
}

// CheckDetail returns the problems of a report that needs more detail than the store keeps of old clicks, by field, in
// words for the client, with the first day that works.
func (r Request) CheckDetail(ctx context.Context, store details) (problems map[string][]string, err error) {
	detail, err := store.ReportDetail(ctx)
	if err != nil {
		return nil, err
	}
	problems = map[string][]string{}
	if StartOf(r.From, r.Zone).Before(detail.Hours) {
		const hint = "Older clicks are known by UTC day only: with this %s the first day is %s."
		first := r.firstDay(detail.Hours)
		if r.Interval == Hour {
			problems[FieldInterval] = []string{fmt.Sprintf(hint, "interval", first)}
		}
		if !r.inUTC() {
			problems[FieldZone] = []string{fmt.Sprintf(hint, "time zone", first)}
		}
	}
	return problems, nil
}

// firstDay returns the date of the first day of the zone that does not begin before a time.
func (r Request) firstDay(from time.Time) string {
	day := DateOf(from.In(r.Zone))
	if StartOf(day, r.Zone).Before(from) {
		day = day.AddDate(0, 0, 1)
	}
	return day.Format(time.DateOnly)
}

// inUTC reports whether the days of the report are UTC days.
func (r Request) inUTC() bool {
	return !slices.ContainsFunc(r.Bounds(), func(at time.Time) bool {
		_, offset := at.Zone()
		return offset != 0
	})
}
