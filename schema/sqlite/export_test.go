package sqlite

import (
	"fmt"
	"time"

	"linkstream/schema"
)

// Queries have their plans tested.
var (
	ClickQueries = map[string]string{
		"mark": markOfLane, "gaps": laneGaps, "counts": clickCounts,
		"combinations of a day": combinationsOf, "days of a link": linkDays, "devices of a link": linkDevices,
		"browsers of a link": linkBrowsers,
	}
)

func init() {
	for _, by := range schema.Dimensions() {
		for name, tables := range map[string][]clickTable{
			"of links": linkTables(byName(by), true), "of an account": ownedNames(byName(by), true),
			"of links with a filter":      factTables(ofQueryLinks, "", byName(by)),
			"of an account with a filter": factTables(ofOwned, "", byName(by)),
		} {
			ClickQueries[string(by)+" "+name] = topSums(tables, shownName(by), "people")
		}
	}
	ClickQueries["links of an account"] = topSums(ownedLinks(true), "key", "people + bots")
	for _, ofLinks := range []bool{true, false} {
		ClickQueries[fmt.Sprint("series of links: ", ofLinks)] = sums(seriesTables(ofLinks, byQuarter))
	}
}

// UnionVisitors is the union of two sets of visitors.
var UnionVisitors = unionVisitors

// SetNow makes the store take the time from now, from the next batch on.
func (c *ClickStore) SetNow(now func() time.Time) { c.now = now }

// DimensionNumber returns the number that the names of a dimension have in a file.
func DimensionNumber(by schema.Dimension) int { return dimensionNumber(by) }

// InClient and WithColumns panic unless files have room for the names of dimensions.
var (
	InClient    = inClient
	WithColumns = withColumns
)
