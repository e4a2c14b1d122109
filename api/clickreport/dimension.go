package clickreport

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"

	"linkstream/schema"
)

// Words are the names of a dimension for clients and readers.
type Words struct {
	List    string // of names, as a field of reports in JSON
	Title   string // of a list of names
	Name    string // singular
	None    string // for clicks without a name
	Unknown string // why no click has a name; "": the list says it
	Rare    bool   // most links have no click with a name
	Targets bool   // names are parts of the URLs that links lead to
	shown   func(name string) string
	problem string                 // of a name that is not valid
	valid   func(name string) bool // nil: any name is
}

// Shown returns a name as people call it.
func (w Words) Shown(name string) string {
	switch {
	case name == "":
		return cmp.Or(w.None, "Unknown")
	case w.shown == nil:
		return name
	}
	return w.shown(name)
}

var words = map[schema.Dimension]Words{
	schema.ByDevice: {List: "devices", Title: "Devices", Name: "Device",
		shown:   func(name string) string { return strings.ToUpper(name[:1]) + name[1:] },
		problem: "The device must be desktop, mobile, tablet, bot or other.", valid: isDevice},
	schema.ByBrowser: {List: "browsers", Title: "Browsers", Name: "Browser"},
	schema.ByOS:      {List: "os", Title: "Operating systems", Name: "Operating system"},
	schema.ByLanguage: {List: "languages", Title: "Languages", Name: "Language", shown: languageName,
		problem: "The language must be a code of two or three lowercase letters (ISO 639), such as de, or Other, or empty " +
			"for none.",
		valid: func(name string) bool {
			return name == "" || name == schema.OtherName || len(name) <= 3 && isCode(name, 'a', 'z')
		}},
	schema.ByReferrer: {List: "referrers", Title: "Referrers", Name: "Referrer", None: "Direct or unknown"},
	schema.ByCountry: {List: "countries", Title: "Countries", Name: "Country", shown: countryName,
		Unknown: "Countries are not recorded here.",
		problem: "The country must be a code of two uppercase letters (ISO 3166-1), such as DE, or empty for those that " +
			"are not known.",
		valid: func(name string) bool { return name == "" || len(name) == 2 && isCode(name, 'A', 'Z') }},
	schema.ByRoute: {List: "routes", Title: "Rules and variants", Name: "Rule or variant",
		None: "Destination", Rare: true,
		problem: "The route must be the name of a rule or variant, or empty for the long URL.",
		valid:   func(name string) bool { return name == "" || name == schema.OtherName || schema.ValidTag(name) }},
	schema.ByCampaign: {List: "campaigns", Title: "Campaigns", Name: "Campaign", None: "None", Rare: true,
		Targets: true},
	schema.ByPath: {List: "paths", Title: "Paths", Name: "Path", None: "None", Rare: true},
}

// WordsOf returns the words for a dimension.
func WordsOf(by schema.Dimension) Words { return words[by] }

// problemOfName says why no click can have a name, or "". The possible names of browsers and systems change with
// releases.
func problemOfName(by schema.Dimension, name string) string {
	w := words[by]
	switch {
	case len(name) > maxNameLen || !utf8.ValidString(name):
		return fmt.Sprintf("The name must be valid UTF-8 of at most %d bytes.", maxNameLen)
	case w.valid != nil && !w.valid(name):
		return w.problem
	}
	return ""
}

// languageName returns the English name of a language tag.
func languageName(tag string) string {
	parsed, err := language.Parse(tag)
	if err != nil {
		return tag
	}
	return cmp.Or(display.English.Languages().Name(parsed), tag)
}

// countryName returns the English name of an ISO 3166-1 code.
func countryName(code string) string {
	region, err := language.ParseRegion(code)
	if err != nil {
		return code
	}
	return cmp.Or(display.English.Regions().Name(region), code)
}

func isDevice(name string) bool {
	return slices.Contains([]schema.Device{schema.Desktop, schema.Mobile, schema.Tablet, schema.Bot, schema.Other}, name)
}

// isCode reports whether a name has only letters from first to last.
func isCode(name string, first, last rune) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return r < first || r > last })
}
