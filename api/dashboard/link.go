package dashboard

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/api/shorten"
	"linkstream/schema"
)

const (
	pathLinks = Root + "/links"
	// The path names a link by domain ID (0 for the default domain) and hash, because domains may share hashes.
	pathLink = pathLinks + "/{domain}/{hash}"
)

// partReport and partLinks name the parts of pages that the script polls.
const (
	partReport = "report"
	partLinks  = "counts"
)

func (d *Dashboard) routeLinks() {
	d.get(pathLinks, d.listLinks)
	d.post(pathLinks, d.createLink)
	d.keep(pathLinks, keptFields...)
	d.get(pathLinks+"/new", d.showNew)
	d.post(pathLinks+"/chosen", d.changeChosen)
	d.routeQR()
	d.post(pathLink+"/active", d.ofLink(d.setActive))
	d.get(pathLink+"/edit", d.ofLink(d.showEdit))
	d.post(pathLink+"/edit", d.editLink)
	d.keep(pathLink+"/edit", keptFields...)
	d.post(pathLink+"/delete", d.ofLink(d.deleteLink))
}

// linkView is a link as shown on pages.
type linkView struct {
	schema.Link
	ShortURL string
	Name     string // the short URL without its scheme
	Prefix   string // what precedes the alias in Name, with the slash
	Path     string // of its page
	State    linkState
	Clicks   string // as pages show them
	Days     spark  // its clicks of some days, in lists
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
	return linkView{Link: link, ShortURL: shortURL, Name: name, Prefix: strings.TrimSuffix(name, link.Hash), State: stateOf(link),
		Path: pathLinks + "/" + strconv.FormatInt(link.DomainID, 10) + "/" + url.PathEscape(link.Hash)}
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

// setActive switches a link on or off and returns to the page with the form.
func (d *Dashboard) setActive(c *call, link linkView) error {
	active := c.form("active") == "true"
	if _, err := d.Shortener.Edit(c.ctx, link.Link, shorten.Edit{IsActive: &active}); err != nil {
		return err
	}
	back := c.back(link.Path)
	done := notice{Text: link.Name + " is switched off. Visitors see that it is not active.",
		Undo: &undo{link.Path + "/active", "active", strconv.FormatBool(!active), back}}
	if active {
		done.Text = link.Name + " is switched on."
	}
	c.setNotice(done)
	return c.redirect(link.at(back))
}

// attach marks the answer as a file download. name needs no escaping.
func (c *call) attach(name, contentType string) {
	c.http.SetContentType(contentType)
	c.http.Response.Header.Set(fasthttp.HeaderContentDisposition, fmt.Sprintf("attachment; filename=%q", name))
}
