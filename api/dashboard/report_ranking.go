package dashboard

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"linkstream/api/clickreport"
	"linkstream/schema"
)

// ranking is a list of names by frequency.
type ranking struct {
	Title, Hint string // Hint says what the rows are of, or why there are none
	Rows        []share
	All         string     // words for the page with more rows; "" if these are all
	File        string     // path of the download; "" without one
	List        string     // its name in the query of the download
	Fields      url.Values // that the query keeps if a row is chosen; nil if they are those of the page
}

// isNamed reports whether any click has a name.
func isNamed(names []schema.NameCount) bool {
	return slices.ContainsFunc(names, func(n schema.NameCount) bool { return n.Name != "" })
}

// knownSince returns the first day whose clicks are all known by the quarter of an hour.
func knownSince(now time.Time) time.Time {
	return clickreport.StartOf(time.Date(now.Year(), now.Month()-12, 1, 0, 0, 0, 0, time.UTC), now.Location())
}

// listRows is how many rows a list has, unless the reader asks for a number of names.
const listRows = 8

// rowsOf returns how many of n names a list shows. The other ones take the last row.
func rowsOf(asked clickreport.Request, n int) int {
	switch {
	case asked.Limit != clickreport.DefaultTop:
		return min(asked.Limit, n)
	case n > listRows:
		return listRows - 1
	}
	return n
}

// allOf says that a list has more than the rows that are shown of n, "" if it has not.
func allOf(asked clickreport.Request, n int, title string) string {
	switch title = strings.ToLower(title); {
	case rowsOf(asked, n) == n || asked.Limit == clickreport.MaxTop:
		return ""
	case n >= namesRead: // there may be more
		return "All " + title
	}
	return "All " + number(int64(n)) + " " + title
}

// Most is the limit of the page with all rows.
func (ranking) Most() int { return clickreport.MaxTop }

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

func orElse(unknown string) func(string) string {
	return func(name string) string {
		if name == "" {
			return unknown
		}
		return name
	}
}
