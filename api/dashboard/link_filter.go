package dashboard

import (
	"net/url"
	"slices"
	"strconv"

	"linkstream/api/shorten"
	"linkstream/schema"
)

// linkFilter says which links the list has, and in which order, as the form has it.
type linkFilter struct {
	Query, Tag string
	Domain     string // ID; "" for any
	State      string // "on", "off"; "" for any
	Sort       string // one of shorten's orders; "" for the newest first
}

// option is a choice of a list.
type option struct {
	Value, Label string
	Chosen       bool
}

// filterOf reads a filter from a query. Values that the form does not offer count as "".
func filterOf(get func(field string) string) linkFilter {
	f := linkFilter{Query: get("q"), Tag: get("tag"), Domain: get("domain"), State: get("state"), Sort: get("sort")}
	if _, err := strconv.ParseUint(f.Domain, 10, 63); err != nil {
		f.Domain = ""
	}
	if f.State != "on" && f.State != "off" {
		f.State = ""
	}
	if !slices.Contains([]string{shorten.SortOldest, shorten.SortClicks, shorten.SortFewest}, f.Sort) {
		f.Sort = ""
	}
	return f
}

// Narrowed reports whether the list may lack links.
func (f linkFilter) Narrowed() bool { return f.Query+f.Tag+f.Domain+f.State != "" }

// Filters returns how many conditions besides the search are set.
func (f linkFilter) Filters() (n int) {
	for _, set := range []string{f.Tag, f.Domain, f.State} {
		if set != "" {
			n++
		}
	}
	return n
}

// add adds the fields that are not empty to the values of a query.
func (f linkFilter) add(values url.Values) {
	for field, value := range map[string]string{"q": f.Query, "tag": f.Tag, "domain": f.Domain, "state": f.State, "sort": f.Sort} {
		if value != "" {
			values.Set(field, value)
		}
	}
}

// request returns the request for all links of the list.
func (f linkFilter) request(accountID int64) shorten.ListRequest {
	req := shorten.ListRequest{AccountID: accountID, Query: f.Query, Tag: f.Tag, Sort: f.Sort}
	if f.Domain != "" {
		id := parseID(f.Domain)
		req.DomainID = &id
	}
	if f.State != "" {
		active := f.State == "on"
		req.IsActive = &active
	}
	return req
}

// Export returns the path of the list as a file.
func (f linkFilter) Export() string {
	values := url.Values{}
	f.add(values)
	if len(values) == 0 {
		return pathExport
	}
	return pathExport + "?" + values.Encode()
}

// filteredLinks returns a page of links. While clicks cannot be read, links are not sorted by them.
func (d *Dashboard) filteredLinks(c *call, page *linksPage) ([]schema.Link, int64, error) {
	f := page.linkFilter
	req := f.request(c.account.ID)
	req.Page = page.Page
	links, total, err := d.Shortener.List(c.ctx, d.Clicks.Of(c.account.ID), req)
	if _, invalid := problemsOf(err); err != nil && !invalid && (f.Sort == shorten.SortClicks || f.Sort == shorten.SortFewest) {
		if schema.ErrorCode(err) == schema.CodeBusy {
			return nil, 0, err
		}
		d.Log.Warn("links not sorted by clicks", "error", err)
		req.Sort = ""
		return d.Shortener.List(c.ctx, d.Clicks.Of(c.account.ID), req)
	}
	return links, total, err
}

// heading is the heading of a column by which the list can be sorted. Its link sorts by it, and reverses the order if the list is sorted
// by it already.
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
	return f.heading("Clicks", "number", shorten.SortClicks, shorten.SortFewest)
}

// ByCreated returns the heading of the times of creation.
func (f linkFilter) ByCreated() heading { return f.heading("Created", "when", "", shorten.SortOldest) }

// address returns the path of a page of the list.
func (f linkFilter) address(page int64) string {
	values := url.Values{"page": {strconv.FormatInt(page, 10)}}
	f.add(values)
	return pathLinks + "?" + values.Encode()
}

func stateOptions(chosen string) []option {
	return options(chosen, option{Label: "Any"}, option{Value: "on", Label: "On"}, option{Value: "off", Label: "Off"})
}

func (f linkFilter) domainOptions(form shortenForm) []option {
	all := []option{{Label: "Any domain"}, {Value: "0", Label: form.Default}}
	for _, domain := range form.Domains {
		all = append(all, option{Value: strconv.FormatInt(domain.ID, 10), Label: domain.Host})
	}
	return options(f.Domain, all...)
}

func options(chosen string, all ...option) []option {
	for i := range all {
		all[i].Chosen = all[i].Value == chosen
	}
	return all
}
