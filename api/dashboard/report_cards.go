package dashboard

import (
	"linkstream/api/clickreport"
	"linkstream/schema"
)

// reportCard is a card of what a report says about a subject. The script shows one panel at a time, by tabs.
type reportCard struct {
	Key, Title string
	Panels     []panel
}

// panel is a list of names or of links, a map, or the hours of the week.
type panel struct {
	ranking
	Key  string
	Tab  string // title of the tab, beside the title of the card
	Top  []topLink
	Map  *worldMap
	Week *weekHeat
	// Later is the path of the page with the list, which is counted when the reader asks for it.
	Later string
}

// cardLists are the cards in the order of the page. Each has a list for each of its dimensions.
var cardLists = []struct {
	key, title string
	lists      []schema.Dimension
}{
	{"sources", "Sources", []schema.Dimension{schema.ByReferrer, schema.ByCampaign}},
	{"links", "Links", []schema.Dimension{schema.ByRoute, schema.ByPath}},
	{"places", "Places", []schema.Dimension{schema.ByCountry, schema.ByLanguage}},
	{"devices", "Devices", []schema.Dimension{schema.ByDevice, schema.ByBrowser, schema.ByOS}},
}

// cards returns the cards of a report. The hours of the week have one of their own if that makes four of them.
func (p *reportPage) cards(
	c *call, asked clickreport.Request, got clickreport.Result, week *clickreport.Week,
) (cards []reportCard, err error) {
	var when []panel
	if week != nil {
		when = []panel{{ranking: ranking{Title: "When people click"}, Key: "week", Tab: "When", Week: newWeekHeat(*week)}}
	}
	for _, of := range cardLists {
		card := reportCard{Key: of.key, Title: of.title}
		switch of.key {
		case "links":
			card.Panels, err = p.topPanel(c, asked, got.Links)
		case "places":
			card.Panels, err = p.mapPanel(c, asked, got.Names[schema.ByCountry])
		}
		if err != nil {
			return nil, err
		}
		if of.key == "links" && p.Show != "" {
			card.Panels = append(card.Panels,
				panel{ranking: ranking{Title: "Tags and domains"}, Key: clickreport.FieldTag, Tab: "Tags", Later: p.Show},
				panel{Key: clickreport.FieldDomain, Tab: "Domains", Later: p.Show})
		}
		for _, by := range of.lists {
			card.Panels = append(card.Panels, p.panels(c, asked, by, got)...)
		}
		switch {
		case len(card.Panels) == 0:
			continue
		case of.key == "places" && len(cards) == 2:
			card.Panels, when = append(card.Panels, when...), nil
		}
		cards = append(cards, card)
	}
	if len(when) > 0 {
		cards = append(cards, reportCard{"when", when[0].Title, when})
	}
	return cards, nil
}

// panels returns the lists of a dimension, none if the reader has no use for them.
func (p *reportPage) panels(c *call, asked clickreport.Request, by schema.Dimension, got clickreport.Result) []panel {
	names := got.Names[by]
	if _, filtered := asked.Filter[by]; !filtered && clickreport.WordsOf(by).Rare && !isNamed(names) || c.hides(by) {
		return nil // most links have neither rules nor variants nor UTM parameters
	}
	if by == schema.ByCampaign {
		return p.campaigns(asked, names, got.Totals.Period)
	}
	return []panel{{ranking: p.ranking(asked, by, names, got.Totals.Period), Key: string(by)}}
}

// topPanel returns the links with the most clicks.
func (p *reportPage) topPanel(c *call, asked clickreport.Request, links []schema.LinkCount) ([]panel, error) {
	top, err := c.dashboard.topLinks(c, links[:rowsOf(asked, len(links))])
	if err != nil || len(top) == 0 {
		return nil, err
	}
	p.setPaths(top, c.share, asked)
	list := ranking{Title: "Top links"}
	if p.Share == nil {
		list.All = allOf(asked, len(links), "links")
	}
	return []panel{{ranking: list, Key: "top", Top: top}}, nil
}

// mapPanel returns the map, none if no country is known.
func (p *reportPage) mapPanel(c *call, asked clickreport.Request, countries []schema.NameCount) ([]panel, error) {
	drawn, err := p.worldMap(c.dashboard.assets, asked, countries)
	if err != nil || drawn == nil {
		return nil, err
	}
	return []panel{{ranking: ranking{Title: "Map of countries"}, Key: "map", Tab: "Map", Map: drawn}}, nil
}
