package dashboard

import (
	"net/url"
	"slices"
	"strconv"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"

	"linkstream/schema"
)

// ranking is a list of names by frequency.
type ranking struct {
	Title, Hint string
	Rows        []share
	All         int        // limit of the page with more rows; 0 if these are all
	File, List  string     // path of the download and the list's name in its query; "" without a download
	Fields      url.Values // that the query keeps if a row is chosen; nil if they are those of the page
}

// share is a name with its count and its percentage.
type share struct {
	Name  string
	Total int64
	Part  float64 // 0 to 100
	Bots  bool
	Field string // that the query has if the row is chosen; "" if it cannot be
	Value string // of the field
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

// isNamed reports whether any click has a name.
func isNamed(names []schema.NameCount) bool {
	return slices.ContainsFunc(names, func(n schema.NameCount) bool { return n.Name != "" })
}

// knownSince returns the first day whose clicks are all known by the quarter of an hour.
func knownSince(now time.Time) time.Time {
	return time.Date(now.Year(), now.Month()-12, 1, 0, 0, 0, 0, now.Location())
}

// newRanking returns the names, most frequent first, and the remainder of all as "Others".
func newRanking(title string, counts []schema.NameCount, all int64, show func(string) string) ranking {
	r := ranking{Title: title}
	rest := all
	for _, count := range counts {
		r.Rows = append(r.Rows, newShare(show(count.Name), count.Total, all))
		rest -= count.Total
	}
	if rest > 0 && len(counts) > 0 {
		r.Rows = append(r.Rows, newShare("Others", rest, all))
	}
	return r
}

func newShare(name string, total, all int64) share {
	return share{Name: name, Total: total, Part: 100 * float64(total) / float64(max(1, all))}
}

func orElse(unknown string) func(string) string {
	return func(name string) string {
		if name == "" {
			return unknown
		}
		return name
	}
}

// countryName returns the English name of an ISO 3166-1 code.
func countryName(code string) string {
	if code == "" {
		return "Unknown"
	}
	if region, err := language.ParseRegion(code); err == nil {
		if name := display.English.Regions().Name(region); name != "" {
			return name
		}
	}
	return code
}
