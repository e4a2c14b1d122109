package dashboard

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"linkstream/api/clickreport"
	"linkstream/api/links"
	"linkstream/schema"
)

// linkFilter says which links the list has, and in which order, as the form has it.
type linkFilter struct {
	Query, Tag string
	Domain     string // ID; "" for any
	State      string // "on", "off", "expired"; "" for any
	From, To   string // the first and the last day of creation, in the account's zone; "": any
	Sort       string // one of the orders of package links; "" for the newest first
	Rows       string // links per page, one of pageSizes; "" for the first of them
}

// pageSizes are the numbers of rows that a list can have.
var pageSizes = []string{strconv.Itoa(schema.PageSize), "50", "100"}

// filterOf reads a filter from a query. Values that the form does not offer count as "".
func filterOf(get func(field string) string) linkFilter {
	f := linkFilter{Query: get("q"), Tag: schema.Fold(get("tag")), Domain: get("domain"), State: get("state"),
		From: get("from"), To: get("to"), Sort: get("sort"), Rows: get("rows")}
	if _, err := strconv.ParseUint(f.Domain, 10, 63); err != nil {
		f.Domain = ""
	}
	if !slices.ContainsFunc(stateOptions(""), func(state option) bool { return state.Value == f.State }) {
		f.State = ""
	}
	for _, day := range []*string{&f.From, &f.To} {
		if _, err := time.Parse(time.DateOnly, *day); err != nil {
			*day = ""
		}
	}
	if !slices.Contains([]string{links.SortOldest, links.SortClicks, links.SortFewest}, f.Sort) {
		f.Sort = ""
	}
	if slices.Index(pageSizes, f.Rows) < 1 {
		f.Rows = ""
	}
	return f
}

// Narrowed reports whether the list may lack links.
func (f linkFilter) Narrowed() bool { return f.Query+f.Tag+f.Domain+f.State+f.From+f.To != "" }

// Filters returns how many conditions besides the search are set.
func (f linkFilter) Filters() (n int) {
	for _, set := range []string{f.Tag, f.Domain, f.State, f.From, f.To} {
		if set != "" {
			n++
		}
	}
	return n
}

// add adds the fields that are not empty to the values of a query.
func (f linkFilter) add(values url.Values) {
	for field, value := range f.Fields() {
		values.Set(field, value)
	}
}

// Fields returns the fields of the form that are not empty.
func (f linkFilter) Fields() map[string]string {
	fields := map[string]string{"q": f.Query, "tag": f.Tag, "domain": f.Domain, "state": f.State, "from": f.From,
		"to": f.To, "sort": f.Sort, "rows": f.Rows}
	maps.DeleteFunc(fields, func(_, value string) bool { return value == "" })
	return fields
}

// request returns the request for all links of the list.
func (f linkFilter) request(c *call) links.ListRequest {
	req := links.ListRequest{AccountID: c.account.ID, Query: f.Query, Tag: f.Tag, Sort: f.Sort,
		Rows: f.size()}
	if f.Domain != "" {
		id := parseID(f.Domain)
		req.DomainID = &id
	}
	switch f.State {
	case "on", "off":
		active := f.State == "on"
		req.IsActive = &active
	case "expired":
		req.ExpiredAt = time.Now()
	}
	if day, err := time.Parse(time.DateOnly, f.From); err == nil {
		req.From = clickreport.StartOf(day, c.zone())
	}
	if day, err := time.Parse(time.DateOnly, f.To); err == nil {
		req.To = clickreport.StartOf(day.AddDate(0, 0, 1), c.zone())
	}
	return req
}

// Export returns the path of the list as a file.
func (f linkFilter) Export() string {
	values := url.Values{}
	f.Rows = ""
	f.add(values)
	if len(values) == 0 {
		return pathExport
	}
	return pathExport + "?" + values.Encode()
}

// filteredLinks returns a page of links. While clicks cannot be read, links are not sorted by them.
func (d *Dashboard) filteredLinks(c *call, page *linksPage) ([]schema.Link, int64, error) {
	f := page.linkFilter
	req := f.request(c)
	req.Page = page.Page
	found, total, err := d.Shortener.List(c.ctx, d.Clicks.Of(c.account.ID), req)
	if _, invalid := problemsOf(err); err != nil && !invalid &&
		(f.Sort == links.SortClicks || f.Sort == links.SortFewest) {
		if schema.ErrorCode(err) == schema.CodeBusy {
			return nil, 0, err
		}
		d.Log.Warn("links not sorted by clicks", "error", err)
		req.Sort = ""
		return d.Shortener.List(c.ctx, d.Clicks.Of(c.account.ID), req)
	}
	return found, total, err
}

// heading is the heading of a column by which the list can be sorted. Its link sorts by it, and reverses the order if
// the list is sorted by it already.
type heading struct {
	Label, Class string
	Order        string // value of aria-sort; "" if the list is sorted by another column
	Path         string
}

func (f linkFilter) heading(label, class, descending, ascending string) heading {
	h, next := heading{Label: label, Class: class}, descending
	switch f.Sort {
	case descending:
		h.Order, next = "descending", ascending
	case ascending:
		h.Order = "ascending"
	}
	f.Sort = next
	h.Path = f.address(1)
	return h
}

// ByClicks returns the heading of the clicks.
func (f linkFilter) ByClicks() heading {
	return f.heading("Clicks", "number", links.SortClicks, links.SortFewest)
}

// ByCreated returns the heading of the times of creation.
func (f linkFilter) ByCreated() heading { return f.heading("Created", "when", "", links.SortOldest) }

// address returns the path of a page of the list.
func (f linkFilter) address(page int64) string { return f.on(pathLinks)(page) }

// on returns the paths of the pages of a list.
func (f linkFilter) on(path string) func(page int64) string {
	return func(page int64) string {
		values := url.Values{"page": {strconv.FormatInt(page, 10)}}
		f.add(values)
		return path + "?" + values.Encode()
	}
}

// size returns the links per page.
func (f linkFilter) size() int64 { return parseID(cmp.Or(f.Rows, pageSizes[0])) }

// sizes returns the first pages of a list with each number of rows.
func (f linkFilter) sizes(path string) (all []pageSize) {
	now := f.size()
	for _, rows := range pageSizes {
		f.Rows = rows
		all = append(all, pageSize{rows, f.on(path)(1), f.size() == now})
	}
	return all
}

func stateOptions(chosen string) []option {
	return options(chosen, option{Label: "Any"}, option{Value: "on", Label: "On"}, option{Value: "off", Label: "Off"},
		option{Value: "expired", Label: "Expired"})
}
