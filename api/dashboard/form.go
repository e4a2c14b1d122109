package dashboard

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"linkstream/schema"
)

// maxAsked bounds how many characters of an invalid form field the page repeats.
const maxAsked = 3 * schema.MaxURLLen

// choiceField is a field of a form with a few values.
type choiceField struct {
	Name, Label, Hint, Text string
	Options                 []choiceOption
}

type choiceOption struct{ Value, Label string }

var pathModes = []choiceOption{
	{string(schema.PathNone), "Not found"},
	{string(schema.PathIgnore), "Redirect to the link's destination"},
	{string(schema.PathAppend), "Append the path to the link's destination"},
}

// withScheme adds https:// to what looks like a host, with or without a port and a path. People leave out what browsers
// do not show.
func withScheme(text string) string {
	if strings.HasPrefix(text, "//") {
		return "https:" + text
	}
	host, _, _ := strings.Cut(text, "/")
	host, _, _ = strings.Cut(host, "?")
	host, _, _ = strings.Cut(host, "#")
	name, port, hasPort := strings.Cut(host, ":")
	if _, err := strconv.ParseUint(port, 10, 16); hasPort && err != nil {
		return text // another scheme
	}
	if !strings.Contains(name, ".") || strings.ContainsAny(name, "@ ") {
		return text
	}
	return "https://" + text
}

// cut returns at most n characters of text.
func cut(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n])
	}
	return text
}

// expiryLayout is what browsers send for a time; they leave out seconds that are 0. The time is in the zone of the
// page.
const (
	expiryLayout      = "2006-01-02T15:04:05"
	shortExpiryLayout = "2006-01-02T15:04"
	expiryMisspelled  = "The time of expiry must look like 2027-01-31T18:00."
)

// formatExpiry returns a time of expiry as text, in a zone; "" for the zero time.
func formatExpiry(at time.Time, zone *time.Location) string {
	switch {
	case at.IsZero():
		return ""
	case at.Second() == 0:
		return at.In(zone).Format(shortExpiryLayout)
	}
	return at.In(zone).Format(expiryLayout)
}

// parseExpiry returns the time that a text names in a zone; the zero time for "". A time over which the zone sets its
// clocks forward is the moment at which it does.
func parseExpiry(text string, zone *time.Location) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	clock, err := time.Parse(shortExpiryLayout, text)
	if err != nil {
		if clock, err = time.Parse(expiryLayout, text); err != nil {
			return time.Time{}, err
		}
	}
	at := time.Date(clock.Year(), clock.Month(), clock.Day(), clock.Hour(), clock.Minute(), clock.Second(), 0, zone)
	_, offset := at.Zone()
	begin, end := at.ZoneBounds()
	switch shown := at.Add(time.Duration(offset) * time.Second); {
	case shown.Before(clock.Truncate(time.Second)):
		return end.In(zone), nil
	case shown.After(clock):
		return begin.In(zone), nil
	}
	return at, nil
}

// parseTags returns the tags that a text names, separated by spaces or commas.
func parseTags(text string) []string {
	tags := strings.FieldsFunc(schema.Fold(text), func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	slices.Sort(tags)
	return slices.Compact(tags)
}

// option is a choice of a list.
type option struct {
	Value, Label string
	Chosen       bool
}

func options(chosen string, all ...option) []option {
	for i := range all {
		all[i].Chosen = all[i].Value == chosen
	}
	return all
}

// verified returns the domains on which links can be created.
func verified(domains []schema.Domain) (usable []schema.Domain) {
	for _, domain := range domains {
		if !domain.VerifiedAt.IsZero() {
			usable = append(usable, domain)
		}
	}
	return usable
}

// defaultDomain returns the host of short links without a domain of the account.
func (d *Dashboard) defaultDomain() string {
	return strings.TrimSuffix(d.linkView(schema.Link{}).Name, "/")
}

// domainOptions returns the choice of a domain that narrows a list or a report. chosen is an ID, "" for any.
func (d *Dashboard) domainOptions(chosen string, usable []schema.Domain) []option {
	all := []option{{Label: "Any domain"}, {Value: "0", Label: d.defaultDomain()}}
	for _, domain := range usable {
		all = append(all, option{Value: strconv.FormatInt(domain.ID, 10), Label: domain.Host})
	}
	return options(chosen, all...)
}
