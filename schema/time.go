package schema

import (
	"errors"
	"regexp"
	"strings"
	"time"
)

// isoTime has the date, the time of day, its fraction, and the offset of a time.
var isoTime = regexp.MustCompile(`^(\d{4}-\d\d-\d\d|\d{8})[Tt ](\d\d:\d\d(?::\d\d)?|\d{4}(?:\d\d)?)([.,]\d+)?` +
	`([Zz]|[+−-]\d\d(?::?\d\d)?)$`)

// maxOffset is the largest offset of a time zone.
const maxOffset = 14 * time.Hour

var errTime = errors.New("not an ISO 8601 date and time with an offset")

// ParseTime returns the time that a text names by ISO 8601 with a calendar date and an offset from UTC: in the extended
// format, as in 2030-01-31T12:00:00+01:00, in the basic format, as in 20300131T120000+0100, or with parts in each. A
// space may stand for T, as in RFC 3339; T and Z may be small letters; seconds and the minutes of the offset may be
// missing; a fraction of a second begins with a dot or a comma, and nanoseconds are kept of it. 24:00 is the end of the
// day. The second 60 is a leap second, which only the last minute of a UTC day can have; it is the next second. An
// offset is at most 14 hours. A date by week or by day of the year is an error.
func ParseTime(text string) (time.Time, error) {
	parts := isoTime.FindStringSubmatch(text)
	if parts == nil {
		return time.Time{}, errTime
	}
	digits := strings.NewReplacer("-", "", ":", "")
	date, clock, fraction := digits.Replace(parts[1]), digits.Replace(parts[2]), strings.Replace(parts[3], ",", ".", 1)
	if len(clock) == len("1504") {
		if fraction != "" { // of a minute
			return time.Time{}, errTime
		}
		clock += "00"
	}
	offset, ok := parseOffset(parts[4])
	later := time.Duration(0)
	switch {
	case clock == "240000" && strings.Trim(fraction, ".0") == "":
		clock, later = "000000", 24*time.Hour
	case strings.HasSuffix(clock, "60"):
		clock, later = clock[:4]+"59", time.Second
	}
	at, err := time.Parse("20060102150405", date+clock+fraction)
	if err != nil || !ok {
		return time.Time{}, errTime
	}
	at = at.Add(later - offset)
	if leap := later == time.Second; leap && !at.Truncate(time.Second).Equal(at.Truncate(24*time.Hour)) {
		return time.Time{}, errTime
	}
	return at.In(time.FixedZone("", int(offset/time.Second))), nil
}

// parseOffset returns the offset from UTC that Z, +01, +0100 or +01:00 stands for. ok is false if it is too large.
func parseOffset(text string) (offset time.Duration, ok bool) {
	if text == "Z" || text == "z" {
		return 0, true
	}
	sign := time.Duration(1)
	number, negative := strings.CutPrefix(text, "-")
	if !negative {
		number, negative = strings.CutPrefix(text, "−") // U+2212, the sign of ISO 8601 where it can be written
	}
	if negative {
		sign = -1
	}
	number = strings.TrimPrefix(number, "+")
	at, err := time.Parse("1504", (strings.Replace(number, ":", "", 1) + "00")[:4])
	offset = time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute
	return sign * offset, err == nil && offset <= maxOffset
}
