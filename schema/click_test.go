package schema_test

import (
	"slices"
	"testing"

	"linkstream/schema"
)

// Stores have kept names by these kinds: another kind would change what is bounded, and where a file has names.
func TestKindsOfNames(t *testing.T) {
	for by, want := range map[schema.Dimension]schema.NameKind{
		schema.ByDevice: schema.FixedNames, schema.ByCountry: schema.FixedNames,
		schema.ByBrowser: schema.PickedNames, schema.ByOS: schema.PickedNames, schema.ByLanguage: schema.PickedNames,
		schema.ByRoute:    schema.OwnedNames,
		schema.ByReferrer: schema.MadeUpNames, schema.ByCampaign: schema.MadeUpNames, schema.ByPath: schema.MadeUpNames,
	} {
		for kind := schema.FixedNames; kind <= schema.MadeUpNames; kind++ {
			if slices.Contains(schema.Dimensions(kind), by) != (kind == want) {
				t.Errorf("%s is wrong among the dimensions of kind %d", by, kind)
			}
		}
	}
}
