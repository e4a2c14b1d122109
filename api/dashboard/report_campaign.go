package dashboard

import (
	"cmp"
	"slices"
	"strings"

	"linkstream/api/clickreport"
	"linkstream/schema"
)

// campaignParts are the parts of the names of campaigns, the widest first: see schema.ClickBatch.Campaign.
var campaignParts = []campaignPart{
	{"campaign_source", "Campaign sources", ""},
	{"campaign_medium", "Campaign mediums", "Mediums"},
	{"campaign_name", "Campaign names", "Names"},
}

type campaignPart struct{ list, title, tab string }

// campaignRows is how many campaigns a row of a part names, unless the reader asks for a number of names.
const campaignRows = 5

// partOf returns a part of the name of a campaign, "" for none.
func partOf(campaign string, part int) string {
	parts := strings.SplitN(campaign, " / ", len(campaignParts))
	switch {
	case campaign == schema.OtherName:
		return campaign
	case part >= len(parts) || parts[part] == "-":
		return ""
	}
	return parts[part]
}

// byPart returns the clicks by a part of the names of campaigns, most first, and the campaigns that have it.
func byPart(campaigns []schema.NameCount, part int) (counts []schema.NameCount, of map[string][]schema.NameCount) {
	of = map[string][]schema.NameCount{}
	for _, campaign := range campaigns {
		name := partOf(campaign.Name, part)
		of[name] = append(of[name], campaign)
	}
	for name, campaigns := range of {
		total := int64(0)
		for _, campaign := range campaigns {
			total += campaign.Total
		}
		counts = append(counts, schema.NameCount{Name: name, Total: total})
	}
	slices.SortFunc(counts, func(a, b schema.NameCount) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Name, b.Name))
	})
	return counts, of
}

// campaigns returns a list for each part of the names of campaigns. Clicks can be filtered by whole names alone, so a
// row has the campaigns that share its part.
func (p *reportPage) campaigns(
	asked clickreport.Request, campaigns []schema.NameCount, all schema.Period,
) (panels []panel) {
	words := clickreport.WordsOf(schema.ByCampaign)
	_, filtered := asked.Filter[schema.ByCampaign]
	some := len(campaigns) >= max(asked.Limit, namesRead)
	most := asked.Limit
	if most == clickreport.DefaultTop {
		most = campaignRows
	}
	for i, part := range campaignParts {
		counts, of := byPart(campaigns, i)
		shown := counts[:rowsOf(asked, len(counts))]
		more := some || len(shown) < len(counts)
		r := newRanking(part.title, shown, all.People, words.Shown)
		r.List = part.list
		for n, count := range shown {
			row, within := &r.Rows[n], of[count.Name]
			if filtered {
				continue
			}
			if len(within) == 1 {
				row.Field, row.Value = string(schema.ByCampaign), within[0].Name
				continue
			}
			row.More = max(0, len(within)-most)
			more = more || row.More > 0
			for _, one := range within[:len(within)-row.More] {
				row.Within = append(row.Within, share{Name: words.Shown(one.Name), Total: one.Total, Value: one.Name})
			}
		}
		if some {
			r.Hint = "Of the " + number(int64(len(campaigns))) + " campaigns with the most clicks."
		}
		if p.Share == nil {
			r.File = p.file()
		}
		if p.Share == nil && more && asked.Limit < clickreport.MaxTop {
			r.All = "All " + strings.ToLower(part.title)
		}
		panels = append(panels, panel{ranking: r, Key: part.list, Tab: part.tab})
	}
	return panels
}
