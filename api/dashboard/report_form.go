package dashboard

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"linkstream/api/clickreport"
	"linkstream/schema"
)

// reportForm is what the form holds.
type reportForm struct {
	Action   string
	From, To string
	Zone     string // "" for the account's
	ByHour   bool
	Filters  []reportFilter // repeated by hidden fields
	ByYear   bool           // the report is compared with the year before
	Figure   string         // that the chart draws
	Period   period         // the zero period if From and To were asked for

	// Of the report of all links.
	Tag     string
	Domain  string   // ID; "" for any
	Domains []option // empty in the report of a link
	Totals  bool     // are shown
}

// reportFilter is a name that all counted clicks have.
type reportFilter struct {
	Field, Value string
	Title, Name  string // as shown
	Without      string // path of the page without it
}

// reportProblems returns the problems of the form by field.
func reportProblems(invalid map[string][]string) problems {
	p := problems{"": "Please correct the marked fields."}
	for field, messages := range invalid {
		if field == clickreport.FieldZone { // the form does not have it
			field = ""
		}
		p[field] = strings.Join(messages, " ")
	}
	return p
}

// fill sets what the page says about the request.
func (p *reportPage) fill(c *call, asked clickreport.Request) {
	text := func(field, other string) string {
		if value := cut(c.query(field), maxAsked); value != "" {
			return value
		}
		return other
	}
	day := func(at time.Time) string {
		if at.IsZero() {
			return ""
		}
		return at.Format(time.DateOnly)
	}
	p.Form.From, p.Form.To = text(clickreport.FieldFrom, day(asked.From)), text(clickreport.FieldTo, day(asked.To))
	p.Form.Zone, p.Form.ByHour = text(clickreport.FieldZone, ""), asked.Interval == clickreport.Hour
	p.Self, p.Fields = p.path(asked, nil), p.fields(asked)
	if p.Share == nil {
		p.File, p.ShareAt = p.pathOf(p.file(), asked, nil, asked.Limit), p.sharePath()
	}
	p.Presets = p.presets(asked, p.since(c), c.now())
	if p.Link == nil && p.Share == nil && !p.Form.Totals {
		with := *p
		with.Form.Totals = true
		p.Show = with.path(asked, nil)
	}
	for _, by := range schema.Dimensions() {
		if value, is := asked.Filter[by]; is {
			without := maps.Clone(asked.Filter)
			delete(without, by)
			words := clickreport.WordsOf(by)
			p.Filters = append(p.Filters, reportFilter{Field: string(by), Value: value, Title: words.Name,
				Name: shownName(by, value), Without: p.path(asked, without) + "#report"})
		}
	}
	p.Form.Filters = p.Filters
	p.Chips = append(p.narrowing(asked), p.Filters...)
	for label, byYear := range map[string]bool{"Period before": false, "Year before": true} {
		as := *p
		as.Form.ByYear = byYear
		p.Against = append(p.Against, preset{label, as.path(asked, nil), byYear == p.Form.ByYear})
	}
	slices.SortFunc(p.Against, func(a, b preset) int { return strings.Compare(a.Label, b.Label) })
	p.Poll = pollEvery(int(asked.To.Sub(asked.From) / (24 * time.Hour)))
	if len(p.Filters) > 0 || p.Narrowed() {
		p.Poll = max(p.Poll, pollSometimes)
	}
}

// narrowing returns the tag and the domain of a report of some links of the account.
func (p *reportPage) narrowing(asked clickreport.Request) (chips []reportFilter) {
	if tag := p.Form.Tag; tag != "" {
		without := *p
		without.Form.Tag = ""
		chips = append(chips, reportFilter{Field: clickreport.FieldTag, Title: "Tag", Name: tag,
			Without: without.path(asked, nil)})
	}
	for _, domain := range p.Form.Domains {
		if domain.Chosen && p.Form.Domain != "" {
			without := *p
			without.Form.Domain = ""
			chips = append(chips, reportFilter{Field: clickreport.FieldDomain, Title: "Domain", Name: domain.Label,
				Without: without.path(asked, nil)})
		}
	}
	return chips
}

// path returns the path of the page with other filters, or with its own if filters is nil.
func (p *reportPage) path(asked clickreport.Request, filters map[schema.Dimension]string) string {
	return p.pathOf(p.Form.Action, asked, filters, asked.Limit)
}

func (p *reportPage) pathOf(
	action string, asked clickreport.Request, filters map[schema.Dimension]string, limit int,
) string {
	return action + "?" + p.query(asked, filters, limit).Encode()
}

// fields returns the fields of the query to which a button of a list adds one. The limit is left out: a button that
// shows all names sets it.
func (p *reportPage) fields(asked clickreport.Request) url.Values {
	values := p.query(asked, nil, asked.Limit)
	if asked.Limit < clickreport.MaxTop {
		values.Del(clickreport.FieldLimit)
	}
	return values
}

// query returns the fields that ask for a report as the page does, apart from filters and limit.
func (p *reportPage) query(asked clickreport.Request, filters map[schema.Dimension]string, limit int) url.Values {
	values := url.Values{}
	for field, value := range map[string]string{clickreport.FieldFrom: p.Form.From, clickreport.FieldTo: p.Form.To,
		clickreport.FieldZone: p.Form.Zone, clickreport.FieldTag: p.Form.Tag,
		clickreport.FieldDomain: p.Form.Domain} {
		if value != "" {
			values.Set(field, value)
		}
	}
	if asked.Interval != clickreport.Day {
		values.Set(clickreport.FieldInterval, string(asked.Interval))
	}
	if p.Form.Period.Key != "" { // the address moves with the days
		for field := range p.Form.Period.fields {
			values.Del(field)
		}
		values.Set(fieldPeriod, p.Form.Period.Key)
	}
	if p.Form.Totals {
		values.Set(fieldTotals, "show")
	}
	if p.Form.ByYear {
		values.Set(fieldCompare, compareYear)
	}
	if p.Form.Figure != figureClicks {
		values.Set(fieldShow, p.Form.Figure)
	}
	if limit != clickreport.DefaultTop {
		values.Set(clickreport.FieldLimit, strconv.Itoa(limit))
	}
	if filters == nil {
		filters = asked.Filter
	}
	for by, value := range filters {
		values.Set(string(by), value)
	}
	return values
}
