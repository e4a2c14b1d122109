package dashboard

import (
	"slices"

	"linkstream/schema"
)

// fieldWall asks for a shared report as a screen shows it that nobody touches.
const fieldWall = "wall"

// wallRows is how many rows of a list a screen has room for, and wallRowsOfMap those below a map.
const wallRows, wallRowsOfMap = 10, 7

// wallPage is the data of such a page. Nothing on it leads anywhere.
type wallPage struct {
	reportPage
	Lists []panel // each with the title of its card, and the map above the countries
}

func newWall(page reportPage) wallPage {
	wall := wallPage{reportPage: page}
	for i := range page.Report.Figures {
		page.Report.Figures[i].Path = ""
	}
	for _, card := range page.Report.Cards {
		list := panel{ranking: ranking{Title: card.Title}}
		for _, p := range card.Panels {
			switch {
			case p.Map != nil:
				list.Map = p.Map
				for i := range p.Map.Countries {
					p.Map.Countries[i].Path = ""
				}
			case p.Key == string(schema.ByReferrer) || p.Key == string(schema.ByCountry):
				most := wallRows
				if list.Map != nil {
					most = wallRowsOfMap
				}
				list.Hint, list.Rows = p.Hint, slices.Clone(p.Rows[:min(most, len(p.Rows))])
				for i := range list.Rows {
					list.Rows[i].Field = ""
				}
				wall.Lists = append(wall.Lists, list)
			}
		}
	}
	return wall
}
