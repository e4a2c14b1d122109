package dashboard

import (
	"maps"
	"math"

	"linkstream/api/clickreport"
	"linkstream/schema"
)

// worldMap shows people by country on static/map.svg, which deploy/tools/worldmap draws. The list of countries beside
// it says the same to those who do not see or point at it.
type worldMap struct {
	File      string
	Countries []mapCountry         // at most mapLinks, those with most people first
	Others    [shades + 1][]string // codes of the others, by shade: a page has no room for their words
}

// mapCountry is a country with clicks.
type mapCountry struct {
	Code, Name string
	People     int64
	Shade      int    // 1 to shades
	Path       string // of the report of this country; "" if the list of countries does not lead there
}

const mapFile = "map.svg"

// namesRead is how many names of a dimension a report reads at least, so that a map has most countries. mapLinks is how
// many of them say their numbers: all 230 would make pages of 110 KiB.
const (
	namesRead = 100
	mapLinks  = 20
)

// shades is how many shades of the accent a map has.
const shades = 5

// shadeOf returns the shade of a share of the most, 0 for none.
func shadeOf(share float64) int { return int(math.Ceil(shades * share)) }

// worldMap returns the map of the countries of a report, nil if none of them is known.
func (p *reportPage) worldMap(
	files assets, asked clickreport.Request, countries []schema.NameCount,
) (*worldMap, error) {
	file, err := files.url(mapFile)
	if err != nil {
		return nil, err
	}
	drawn, most := &worldMap{File: file}, int64(0)
	_, filtered := asked.Filter[schema.ByCountry]
	for i, country := range countries[:min(len(countries), namesRead)] {
		if _, err := files.symbol(mapFile, country.Name); err != nil {
			continue
		}
		most = max(most, country.Total) // the first one has most; shades of roots tell small countries apart
		shade := shadeOf(math.Sqrt(float64(country.Total) / float64(most)))
		if len(drawn.Countries) == mapLinks {
			drawn.Others[shade] = append(drawn.Others[shade], country.Name)
			continue
		}
		shown := mapCountry{Code: country.Name, Name: clickreport.WordsOf(schema.ByCountry).Shown(country.Name),
			People: country.Total, Shade: shade}
		if !filtered && i < rowsOf(asked, len(countries)) { // the list has it too, for the keyboard
			with := map[schema.Dimension]string{schema.ByCountry: country.Name}
			maps.Copy(with, asked.Filter)
			shown.Path = p.path(asked, with) + "#report"
		}
		drawn.Countries = append(drawn.Countries, shown)
	}
	if len(drawn.Countries) == 0 {
		return nil, nil
	}
	return drawn, nil
}
