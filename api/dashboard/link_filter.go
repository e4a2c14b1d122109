package dashboard

import (
	"net/url"
	"strconv"

	"linkstream/api/shorten"
	"linkstream/schema"
)

// linkFilter says which links the list has, and in which order, as the form has it.
type linkFilter struct {
	Query, Tag string
	Domain     string // ID; "" for any
	State      string // "on", "off"; "" for any
	Sort       string // one of shorten's orders; "" for the default
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
	if f.Sort != shorten.SortOldest && f.Sort != shorten.SortClicks {
		f.Sort = ""
	}
	return f
}

// Narrowed reports whether the list may lack links.
func (f linkFilter) Narrowed() bool { return f.Query+f.Tag+f.Domain+f.State != "" }

// Filtered reports whether something besides the search may leave out links.
func (f linkFilter) Filtered() bool { return f.Tag+f.Domain+f.State != "" }

// Open reports whether more than the search is set.
func (f linkFilter) Open() bool { return f.Tag+f.Domain+f.State+f.Sort != "" }

// add adds what is set to the values of a query.
func (f linkFilter) add(values url.Values) {
	for field, value := range map[string]string{"q": f.Query, "tag": f.Tag, "domain": f.Domain, "state": f.State, "sort": f.Sort} {
		if value != "" {
			values.Set(field, value)
		}
	}
}

// filteredLinks returns a page of links. While clicks cannot be read, links are not sorted by them.
func (d *Dashboard) filteredLinks(c *call, page *linksPage) ([]schema.Link, int64, error) {
	f := page.linkFilter
	req := shorten.ListRequest{AccountID: c.account.ID, Query: f.Query, Tag: f.Tag, Sort: f.Sort, Page: page.Page}
	if f.Domain != "" {
		id := parseID(f.Domain)
		req.DomainID = &id
	}
	if f.State != "" {
		active := f.State == "on"
		req.IsActive = &active
	}
	links, total, err := d.Shortener.List(c.ctx, d.Clicks, req)
	if _, invalid := problemsOf(err); err != nil && !invalid && f.Sort == shorten.SortClicks {
		d.Log.Warn("links not sorted by clicks", "error", err)
		req.Sort = ""
		return d.Shortener.List(c.ctx, d.Clicks, req)
	}
	return links, total, err
}

func sortOptions(chosen string) []option {
	return options(chosen, option{Label: "Newest first"}, option{Value: shorten.SortOldest, Label: "Oldest first"},
		option{Value: shorten.SortClicks, Label: "Most clicks first"})
}

func stateOptions(chosen string) []option {
	return options(chosen, option{Label: "On or off"}, option{Value: "on", Label: "On"}, option{Value: "off", Label: "Off"})
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
