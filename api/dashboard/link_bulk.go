package dashboard

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"linkstream/api/links"
	"linkstream/api/request"
)

const (
	maxBulkLinks = 500 // of one form
	fieldLines   = "links"
)

// bulkTimeout is callTimeout of many links.
var bulkTimeout = 30 * time.Second

func (d *Dashboard) routeBulk() {
	d.get(pathBulk, request.Constant, d.showBulk)
	d.post(pathBulk, request.Writes, d.createMany)
	d.keep(pathBulk, fieldLines, links.FieldTags, links.FieldDomainID)
}

// bulkPage is the data of the page that creates many links.
type bulkPage struct {
	Lines    string // as typed; after a creation those that have failed
	Tags     string
	DomainID int64
	Form     shortenForm // for its domains
	Most     int

	Created int64
	Results []bulkResult
}

// bulkResult is what became of a line.
type bulkResult struct {
	Number  int // of the line
	Line    string
	Made    *linkView // nil if it has failed
	Problem string
}

// ShortURLs returns the new links, one per line.
func (p bulkPage) ShortURLs() string {
	var urls []string
	for _, result := range p.Results {
		if result.Made != nil {
			urls = append(urls, result.Made.ShortURL)
		}
	}
	return strings.Join(urls, "\n")
}

// Failed returns the number of lines that have failed.
func (p bulkPage) Failed() int64 { return int64(len(p.Results)) - p.Created }

// bulkPage returns the page. get reads the fields of its form.
func (d *Dashboard) bulkPage(c *call, get func(field string) string) (page bulkPage, err error) {
	page.Lines, page.Tags = get(fieldLines), cut(get(links.FieldTags), maxAsked)
	page.DomainID, page.Most = parseID(get(links.FieldDomainID)), maxBulkLinks
	page.Form, err = d.shortenForm(c)
	return page, err
}

func (d *Dashboard) showBulk(c *call) error {
	page, err := d.bulkPage(c, c.query)
	if err != nil {
		return err
	}
	return d.render(c, "bulk", page)
}

// createMany creates the links of all lines that are right. The page shows what became of each, and keeps the others to
// be corrected.
func (d *Dashboard) createMany(c *call) error {
	page, err := d.bulkPage(c, c.form)
	if err != nil {
		return err
	}
	page.Results = readLines(page.Lines)
	switch n := len(page.Results); {
	case n == 0:
		page.Results = nil
		return d.invalid(c, "bulk", page, problems{fieldLines: "Please paste at least one URL."})
	case n > maxBulkLinks:
		page.Results = nil
		return d.invalid(c, "bulk", page,
			problems{fieldLines: fmt.Sprintf("There are %s lines. Create at most %d links at a time, or import a file.",
				number(int64(n)), maxBulkLinks)})
	}
	wait, err := d.attempts.Allow(c.ctx, bulkByAccount.By(strconv.FormatInt(c.account.ID, 10)))
	if err != nil {
		return err
	}
	if wait > 0 {
		page.Results = nil
		return d.tooMany(c, "bulk", page, "Too many new links.", wait, nil)
	}
	if err := d.createLines(c, &page); err != nil {
		return err
	}
	var failed []string
	for _, result := range page.Results {
		if result.Made == nil {
			failed = append(failed, result.Line)
		}
	}
	page.Lines = strings.Join(failed, "\n")
	if page.Created == 0 {
		return d.invalid(c, "bulk", page, problems{fieldLines: "No links were created. What is wrong with each line is " +
			"shown below."})
	}
	return d.render(c, "bulk", page)
}

// readLines returns a result for each line that is not empty.
func readLines(text string) (results []bulkResult) {
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			results = append(results, bulkResult{Number: i + 1, Line: line})
		}
	}
	return results
}

// createLines sets the outcome of each result of the page.
func (d *Dashboard) createLines(c *call, page *bulkPage) error {
	var reqs []links.Request
	var of []*bulkResult
	for i := range page.Results {
		result := &page.Results[i]
		words := strings.Fields(result.Line)
		req := links.Request{AccountID: c.account.ID, LongURL: withScheme(words[0]),
			Tags: slices.Clone(parseTags(page.Tags))}
		switch {
		case len(words) > 2:
			result.Problem = "Each line must be a URL, or a URL, a space and an alias."
			continue
		case len(words) == 2:
			alias := aliasOf(words[1])
			req.Alias = &alias
		}
		if page.DomainID != 0 {
			req.DomainID = &page.DomainID
		}
		reqs, of = append(reqs, req), append(of, result)
	}
	ctx, cancel := context.WithTimeout(context.Background(), bulkTimeout)
	defer cancel()
	made, err := d.Shortener.CreateAll(ctx, reqs)
	if err != nil {
		return err
	}
	for i, m := range made {
		if p, invalid := linkProblems(m.Err); invalid {
			of[i].Problem = lineProblem(p)
			continue
		}
		if m.Err != nil {
			return m.Err
		}
		view := d.linkView(m.Link)
		of[i].Made = &view
		page.Created++
	}
	return nil
}

// lineProblem joins the problems of the fields of a line.
func lineProblem(p problems) string {
	var all []string
	for _, field := range []string{links.FieldLongURL, links.FieldAlias, links.FieldDomainID,
		links.FieldTags, ""} {
		if text := p[field]; text != "" {
			all = append(all, text)
		}
	}
	return strings.Join(all, " ")
}
