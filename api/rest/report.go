package rest

import (
	"errors"
	"maps"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/api/clickreport"
	"linkstream/api/links"
	"linkstream/schema"
)

type totals struct {
	Clicks int64 `json:"clicks"`
	People int64 `json:"people"`
	Bots   int64 `json:"bots"`
	// Imported is missing in reports without imported clicks, as in reportPoint.
	Imported *int64 `json:"imported,omitempty"`
	// Visitors is null if they are not known, as in reportPoint.
	Visitors *int64 `json:"visitors"`
}

type reportPoint struct {
	At       string `json:"at"`
	People   int64  `json:"people"`
	Bots     int64  `json:"bots"`
	Imported *int64 `json:"imported,omitempty"`
	Visitors *int64 `json:"visitors"`
}

type nameClicks struct {
	Name   string `json:"name"`
	Clicks int64  `json:"clicks"`
}

// weekHour is an hour of a week: weekday 1 is Monday.
type weekHour struct {
	Weekday int   `json:"weekday"`
	Hour    int   `json:"hour"`
	People  int64 `json:"people"`
}

type linkClicks struct {
	Hash     string `json:"hash"`
	DomainID *int64 `json:"domain_id"`
	ShortURL string `json:"short_url"`
	Clicks   int64  `json:"clicks"`
}

// linkReport answers GET /api/v1/links/{hash}/report.
func (a *API) linkReport(c *call) error {
	link, err := a.ownedLink(c)
	var invalid *schema.Error
	if err != nil && (!errors.As(err, &invalid) || invalid.Code != schema.CodeInvalid) {
		return err
	}
	asked, err := a.readReport(c, invalid)
	if err != nil {
		return err
	}
	result, err := asked.OfLink(c.ctx, a.clicks, link)
	if err != nil {
		return withOutage(readingClicks, err)
	}
	body := a.reportBody(c, asked, result)
	body["hash"] = link.Hash
	if err := a.addWeek(c, body, asked, []int64{link.ID}); err != nil {
		return err
	}
	return answer(c.http, fasthttp.StatusOK, body)
}

// accountReport answers GET /api/v1/report.
func (a *API) accountReport(c *call) error {
	ids, invalid, err := a.reportLinks(c)
	if err != nil {
		return err
	}
	asked, err := a.readReport(c, invalid)
	if err != nil {
		return err
	}
	result, err := asked.OfAccount(c.ctx, a.clicks, c.account, ids)
	if err != nil {
		return withOutage(readingClicks, err)
	}
	body := a.reportBody(c, asked, result)
	if err := a.addWeek(c, body, asked, ids); err != nil {
		return err
	}
	if body["links"], err = a.linkClicks(c, result.Links); err != nil {
		return err
	}
	return answer(c.http, fasthttp.StatusOK, body)
}

// reportLinks returns the links that a query names by tag and domain, nil if it names none, and the problems of its
// fields.
func (a *API) reportLinks(c *call) (ids []int64, invalid *schema.Error, err error) {
	args := c.http.QueryArgs()
	ids, problems, err := clickreport.SelectLinks(c.ctx, a.links, c.account, func(field string) (string, bool) {
		return string(args.Peek(field)), args.Has(field)
	})
	if err != nil {
		return nil, nil, withOutage(readingLinks, err)
	}
	if len(problems) > 0 {
		invalid = &schema.Error{Code: schema.CodeInvalid, Fields: problems}
	}
	return ids, invalid, nil
}

// readReport reads the query of a report. Problems found by the caller and problems of the query are one answer.
func (a *API) readReport(c *call, besides *schema.Error) (clickreport.Request, error) {
	args := c.http.QueryArgs()
	asked, problems := clickreport.Parse(func(field string) (string, bool) {
		return string(args.Peek(field)), args.Has(field)
	}, time.Now())
	if len(problems) == 0 {
		var err error
		if problems, err = asked.CheckDetail(c.ctx, a.clicks); err != nil {
			return asked, withOutage(readingClicks, err)
		}
	}
	if besides != nil {
		maps.Copy(problems, besides.Fields)
	}
	if len(problems) > 0 {
		return asked, links.InvalidFields(problems)
	}
	return asked, nil
}

// reportBody returns the fields that the reports of a link and of an account have. Each dimension has a list of names.
func (a *API) reportBody(c *call, asked clickreport.Request, result clickreport.Result) map[string]any {
	imported := result.Totals.Imported > 0 || result.Previous.Imported > 0
	series := make([]reportPoint, len(result.Series))
	for i, p := range result.Series {
		series[i] = reportPoint{p.At.Format(timeLayout), p.People, p.Bots, importedOf(p.Count, imported), p.Visitors}
	}
	var countedUntil *string
	if at, known := a.countedUntil(c.ctx); known {
		countedUntil = new(formatTime(at))
	}
	body := map[string]any{
		"success": true, "from": asked.From.Format(time.DateOnly), "to": asked.To.Format(time.DateOnly),
		"tz":       asked.Zone.String(),
		"interval": asked.Interval, "counted_until": countedUntil, "totals": newTotals(result.Totals, imported),
		"previous": newTotals(result.Previous, imported), "series": series,
	}
	for _, by := range schema.Dimensions() {
		names := make([]nameClicks, len(result.Names[by]))
		for i, name := range result.Names[by] {
			names[i] = nameClicks{name.Name, name.Total}
		}
		body[clickreport.WordsOf(by).List] = names
	}
	return body
}

// addWeek adds the people of the hours of a week to a report, if they are known.
func (a *API) addWeek(c *call, body map[string]any, asked clickreport.Request, ids []int64) error {
	week, err := asked.Week(c.ctx, a.clicks, c.account, ids)
	if err != nil {
		return withOutage(readingClicks, err)
	}
	if week == nil {
		return nil
	}
	hours := make([]weekHour, len(week))
	for i, people := range week {
		weekday, hour := week.At(i)
		hours[i] = weekHour{weekday, hour, people}
	}
	body["week"] = hours
	return nil
}

func newTotals(c clickreport.Count, imported bool) totals {
	return totals{c.Total(), c.People, c.Bots, importedOf(c, imported), c.Visitors}
}

// importedOf returns the imported clicks in a report that has any.
func importedOf(c clickreport.Count, imported bool) *int64 {
	if !imported {
		return nil
	}
	return &c.Imported
}

// linkClicks names links that are counted. It leaves out deleted links.
func (a *API) linkClicks(c *call, counts []schema.LinkCount) ([]linkClicks, error) {
	ids := make([]int64, len(counts))
	for i, count := range counts {
		ids[i] = count.LinkID
	}
	found, err := a.links.LinksByID(c.ctx, c.account, ids)
	if err != nil {
		return nil, withOutage(readingLinks, err)
	}
	byID := make(map[int64]schema.Link, len(found))
	for _, link := range found {
		byID[link.ID] = link
	}
	all := []linkClicks{}
	for _, count := range counts {
		link, ok := byID[count.LinkID]
		if !ok {
			continue
		}
		item := linkClicks{Hash: link.Hash, ShortURL: a.shortener.ShortURL(link), Clicks: count.Total}
		if link.DomainID != 0 {
			item.DomainID = &link.DomainID
		}
		all = append(all, item)
	}
	return all, nil
}
