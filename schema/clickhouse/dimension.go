package clickhouse

import (
	"slices"
	"strings"

	"linkstream/schema"
)

// linkGroup is dimensions that a projection has together, by link and UTC day.
type linkGroup struct {
	Projection string
	Dimensions []schema.Dimension
	// Many says that clients make the names up. An account may have a million links, and a link a thousand referrers per day.
	Many bool
}

// linkGroups has each dimension once. Names that depend on each other stand together: rules often ask for the device, and a referrer goes
// with a campaign. A referrer and a country hardly depend on each other: a link with 300 referrers from 40 countries would have 12,000
// rows per day.
var linkGroups = []linkGroup{
	{"link_clients", []schema.Dimension{schema.ByDevice, schema.ByBrowser, schema.ByRoute}, false},
	{"link_places", []schema.Dimension{schema.ByOS, schema.ByLanguage, schema.ByCountry}, false},
	{"link_referrers", []schema.Dimension{schema.ByReferrer, schema.ByCampaign}, true},
}

// Columns are the group's columns.
func (g linkGroup) Columns() string { return columnList(g.Dimensions) }

// has reports whether all columns are the group's.
func (g linkGroup) has(columns []string) bool {
	return !slices.ContainsFunc(columns, func(column string) bool { return !slices.Contains(g.Dimensions, schema.Dimension(column)) })
}

// columnList returns the columns of dimensions for a statement.
func columnList(dimensions []schema.Dimension) string {
	var columns []string
	for _, by := range dimensions {
		columns = append(columns, string(by))
	}
	return strings.Join(columns, ", ")
}

var (
	dimensions = schema.Dimensions()
	// allNames are the columns of all dimensions.
	allNames = columnList(dimensions)
)

// The sums of clicks in all projections. A query must have them in the same form.
const (
	people = "sumIf(weight, device != 'bot')"
	bots   = "sumIf(weight, device = 'bot')"
)

// For the templates of migrations.

func (layout) Dimensions() []schema.Dimension { return dimensions }
func (layout) AllNames() string               { return allNames }
func (layout) LinkGroups() []linkGroup        { return linkGroups }
func (layout) Sums() string                   { return people + ", " + bots }
func (layout) LastRow() string                { return lastRow }
func (layout) VisitorState() string           { return visitorState }
func (layout) VisitorType() string            { return visitorType }
