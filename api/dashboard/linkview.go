package dashboard

import (
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"

	"linkstream/schema"
)

// partReport and partLinks name the parts of pages that the script polls.
const (
	partReport = "report"
	partLinks  = "counts"
)

// linkView is a link as shown on pages.
type linkView struct {
	schema.Link
	ShortURL string
	Name     string // the short URL without its scheme
	Prefix   string // what precedes the alias in Name, with the slash
	Path     string // of its page
	State    linkState
	Clicks   string     // as pages show them
	Days     spark      // its clicks of some days, in lists
	Chips    []linkChip // what it does besides leading to its long URL, where pages say so
}

// linkState is what pages say of whether a link works.
type linkState struct{ Name, Class string }

func stateOf(link schema.Link) linkState {
	switch {
	case link.Stopped == schema.TakenDown:
		return linkState{"taken down", "bad"}
	case link.Stopped == schema.HostLost:
		return linkState{"domain lost", "bad"}
	case !link.Active:
		return linkState{"off", ""}
	case link.ExpiredAt(time.Now()):
		return linkState{"expired", "warn"}
	}
	return linkState{"on", "good"}
}

func (d *Dashboard) linkView(link schema.Link) linkView {
	shortURL := d.Shortener.ShortURL(link)
	_, name, _ := strings.Cut(shortURL, "://")
	return linkView{Link: link, ShortURL: shortURL, Name: name, Prefix: strings.TrimSuffix(name, link.Hash),
		State: stateOf(link),
		Path:  pathLinks + "/" + strconv.FormatInt(link.DomainID, 10) + "/" + url.PathEscape(link.Hash)}
}

// at returns the path of a list with the fragment of the link's row, where browsers scroll to.
func (l linkView) at(list string) string {
	if to, err := url.Parse(list); err != nil || to.Path != pathLinks {
		return list
	}
	return list + "#link-" + strconv.FormatInt(l.ID, 10)
}

// FromList is Path relative to the list of links, where every byte counts twenty times.
func (l linkView) FromList() string { return strings.TrimPrefix(l.Path, Root+"/") }

// TargetHost returns the host of the long URL.
func (l linkView) TargetHost() string {
	_, rest, _ := strings.Cut(l.URL, "://")
	host, _, _ := strings.Cut(rest, "/")
	return host
}

// Front returns what precedes the alias in ShortURL.
func (l linkView) Front() string { return strings.TrimSuffix(l.ShortURL, l.Hash) }

// LongURLIsLong reports whether pages show only the beginning of the long URL.
func (l linkView) LongURLIsLong() bool { return len(l.URL) > 160 }

// Expired reports whether visitors do not reach the long URL any more.
func (l linkView) Expired() bool { return l.ExpiredAt(time.Now()) }

// fileName returns the name of a downloaded file.
func (l linkView) fileName(suffix string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, l.Name) + suffix
}

// ownLink returns the link that the path names. CodeNotFound if it does not belong to the account.
func (d *Dashboard) ownLink(c *call) (linkView, error) {
	hash := c.pathValue("hash")
	domainID, err := strconv.ParseInt(c.pathValue("domain"), 10, 64)
	if err != nil || domainID < 0 || !schema.ValidHash(hash) {
		return linkView{}, errNoPage
	}
	link, err := schema.FindOwnedLink(c.ctx, d.DB, c.account.ID, hash, &domainID)
	if err != nil {
		return linkView{}, err
	}
	return d.linkView(link), nil
}

// ofLink lets handle answer for the account's link that the path names.
func (d *Dashboard) ofLink(handle func(*call, linkView) error) func(*call) error {
	return func(c *call) error {
		link, err := d.ownLink(c)
		if err != nil {
			return err
		}
		return handle(c, link)
	}
}

// Key names the link in the forms of the trash: two links of one account may have the same hash.
func (l linkView) Key() string { return strconv.FormatInt(l.DomainID, 10) + "." + l.Hash }

// spark is a link's clicks of the last sparkDays days as a line with a point every four pixels.
type spark struct {
	Total int64
	Path  string // of SVG
}

// topLink is a link with its clicks relative to the first link's.
type topLink struct {
	linkView
	Share share
}

// topList is the data of the template "top".
type topList struct {
	Links  []topLink
	During string // follows the headings
}

// topLinks returns the counted links, most clicks first.
func (d *Dashboard) topLinks(c *call, counts []schema.LinkCount) ([]topLink, error) {
	if len(counts) == 0 {
		return nil, nil
	}
	ids := make([]int64, len(counts))
	for i, count := range counts {
		ids[i] = count.LinkID
	}
	links, err := d.DB.LinksByID(c.ctx, c.account.ID, ids)
	if err != nil {
		return nil, err
	}
	byID := map[int64]schema.Link{}
	for _, link := range links {
		byID[link.ID] = link
	}
	var top []topLink
	for _, count := range counts {
		if link, ok := byID[count.LinkID]; ok {
			view := d.linkView(link)
			view.Clicks = number(count.Total)
			top = append(top, topLink{view, newShare("", count.Total, counts[0].Total)})
		}
	}
	return top, nil
}

// linkChip says in a word what is set for a link, and when that will be.
type linkChip struct {
	Icon, Text string
	When       template.HTML
}

// addChips sets the chips of links. If the store does not say what is left of click limits, chips say the limits.
func (d *Dashboard) addChips(c *call, links []linkView) {
	var limited []int64
	for _, link := range links {
		if link.Behaviour != nil && link.Behaviour.MaxClicks != 0 {
			limited = append(limited, link.ID)
		}
	}
	var use map[int64]schema.LimitUse
	if len(limited) > 0 {
		use, _ = d.DB.LimitUse(c.ctx, limited)
	}
	for i := range links {
		links[i].Chips = chipsOf(links[i].Link, use)
	}
}

// chipsOf returns the chips of a link. use is nil if it is not known.
func chipsOf(link schema.Link, use map[int64]schema.LimitUse) (chips []linkChip) {
	e := link.Behaviour
	if e == nil {
		e = new(schema.Behaviour)
	}
	add := func(icon, text string) { chips = append(chips, linkChip{Icon: icon, Text: text}) }
	if e.Password != 0 {
		add("lock", "Password")
	}
	switch limit := number(e.MaxClicks); {
	case e.MaxClicks == 0:
	case use == nil:
		add("gauge", "Limit "+limit)
	default:
		add("gauge", number(max(0, e.MaxClicks-use[link.ID].Spent))+" of "+limit+" left")
	}
	var weights []string
	for _, v := range e.Variants {
		weights = append(weights, strconv.Itoa(v.Weight))
	}
	if len(weights) > 0 {
		add("split", "A/B "+strings.Join(weights, "/"))
	}
	if n := len(e.Rules); n > 0 {
		add("route", counted(int64(n), "rule", "rules"))
	}
	if mode, _ := e.Paths(link.URL); mode != schema.PathDefault {
		add("git-branch", "Paths: "+string(mode))
	}
	return chips
}
