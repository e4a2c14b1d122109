package clickhouse

import (
	"slices"
	"strings"

	"linkstream/schema"
)

// linkGroup is dimensions that a projection has together, by link and UTC day.
type linkGroup struct {
	projection string
	columns    []string
	// many says that clients make names up. An account may have a million links, and a link a thousand referrers per day.
	many bool
}

// linkGroups has each dimension once. Names that depend on each other stand together: rules often ask for the device,
// and a referrer goes with a campaign. A referrer and a country hardly depend on each other: a link with 300 referrers
// from 40 countries would have 12,000 rows per day. Paths are with referrers because few links have any: a projection
// of their own would cost every insert.
var linkGroups = []linkGroup{
	newLinkGroup("link_clients", schema.ByDevice, schema.ByBrowser, schema.ByRoute),
	newLinkGroup("link_places", schema.ByOS, schema.ByLanguage, schema.ByCountry),
	newLinkGroup("link_referrers", schema.ByReferrer, schema.ByCampaign, schema.ByPath),
}

func newLinkGroup(projection string, all ...schema.Dimension) linkGroup {
	madeUp := schema.Dimensions(schema.MadeUpNames)
	return linkGroup{projection, columnsOf(all...),
		slices.ContainsFunc(all, func(by schema.Dimension) bool { return slices.Contains(madeUp, by) })}
}

// has reports whether all columns are the group's.
func (g linkGroup) has(columns []string) bool {
	return !slices.ContainsFunc(columns, func(column string) bool { return !slices.Contains(g.columns, column) })
}

// columnsOf returns the columns of dimensions.
func columnsOf(dimensions ...schema.Dimension) (columns []string) {
	for _, by := range dimensions {
		columns = append(columns, string(by))
	}
	return columns
}

var (
	dimensions = schema.Dimensions()
	// allNames are the columns of all dimensions.
	allNames = strings.Join(columnsOf(dimensions...), ", ")
)

// The sums of clicks in all projections. A query must have them in the same form.
const (
	people = "sumIf(weight, device != 'bot')"
	bots   = "sumIf(weight, device = 'bot')"
)
