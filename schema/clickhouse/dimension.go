package clickhouse

import (
	"strings"

	"linkstream/schema"
)

// linkGroup is dimensions that a projection has together, by link and UTC day.
type linkGroup struct {
	Projection string
	Dimensions []schema.Dimension
}

// linkGroups has each dimension once. Names that depend on each other stand together; rules often
// ask for the device. A referrer and a country hardly do: a link with
// 300 referrers from 40 countries would have 12,000 rows per day.
var linkGroups = []linkGroup{
	{"link_clients", []schema.Dimension{schema.ByDevice, schema.ByBrowser, schema.ByRoute}},
	{"link_places", []schema.Dimension{schema.ByOS, schema.ByLanguage, schema.ByCountry}},
	{"link_referrers", []schema.Dimension{schema.ByReferrer}},
}

// Columns are the group's columns.
func (g linkGroup) Columns() string { return columnList(g.Dimensions) }

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
