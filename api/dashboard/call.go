package dashboard

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/api/request"
	"linkstream/schema"
	"linkstream/schema/turns"
)

// call is one request.
type call struct {
	ctx       context.Context // bounds all queries of the request
	cancel    context.CancelFunc
	leave     func() // gives the bytes of a large form back; nil: none
	http      *fasthttp.RequestCtx
	turn      *request.Turn
	dashboard *Dashboard
	route     string // the pattern of the path

	account schema.Account // the zero value unless signedIn
	session schema.Session
	share   *schema.Share // whose report is read, by nobody who is signed in: account is its owner; nil on other pages
	brand   *brand        // of the domain whose report is shared; nil: the service's
	csrf    string        // the session's CSRF token; every form carries it

	location *time.Location // see zone; nil until it is asked for
}

// setDeadline lets the queries of the request take callTimeout from now on.
func (c *call) setDeadline() {
	if c.cancel != nil {
		c.cancel()
	}
	c.ctx, c.cancel = context.WithTimeout(request.Context(c.http), callTimeout)
}

// end releases the resources of the call.
func (c *call) end() {
	c.cancel()
	if c.leave != nil {
		c.leave()
	}
}

// signedIn reports whether the request has a valid session of an account that is not suspended.
func (c *call) signedIn() bool { return c.session.ID != 0 }

// form returns a field of the posted form, trimmed, as valid UTF-8. Values of one name are separated by commas. The
// limit of a request's body bounds its length.
func (c *call) form(name string) string { return strings.Join(c.values(name), ", ") }

// secret returns a field exactly as it was typed.
func (c *call) secret(name string) string { return string(c.http.PostArgs().Peek(name)) }

// formID returns a field as an ID, or 0 if it is not one. No stored object has ID 0.
func (c *call) formID(name string) int64 { return parseID(c.form(name)) }

// query returns a parameter of the URL, like form.
func (c *call) query(name string) string { return clean(c.http.QueryArgs().Peek(name)) }

// pathValue returns the path parameter with that name, unescaped.
func (c *call) pathValue(name string) string {
	value, _ := c.http.UserValue(name).(string)
	value, err := url.PathUnescape(value)
	if err != nil {
		return ""
	}
	return clean([]byte(value))
}

// pathID returns the path parameter as an ID, or 0 if it is not one.
func (c *call) pathID(name string) int64 { return parseID(c.pathValue(name)) }

// page returns the page number that the parameter "page" asks for, 1 by default.
func (c *call) page() int64 { return max(1, parseID(c.query("page"))) }

func clean(value []byte) string {
	return strings.TrimSpace(strings.ToValidUTF8(string(value), "\uFFFD"))
}

func parseID(s string) int64 {
	id, err := strconv.ParseInt(s, 10, 64)
	if err != nil || id < 0 {
		return 0
	}
	return id
}

// peer returns the remote address of the connection.
func (c *call) peer() netip.Addr {
	if addr, ok := c.http.RemoteAddr().(*net.TCPAddr); ok {
		return addr.AddrPort().Addr()
	}
	return netip.Addr{}
}

// client returns the address of the client, behind proxies that are trusted.
func (c *call) client() netip.Addr {
	return c.dashboard.proxies.Client(c.peer(), &c.http.Request.Header)
}

// site returns the network that the client can have for itself.
func (c *call) site() turns.Client { return turns.Site(c.client()) }

// payer returns whose turns the work of the request takes: the account's, or without one the network's.
func (c *call) payer() turns.Client {
	if c.account.ID != 0 {
		return turns.Account(c.account.ID)
	}
	return c.site()
}

// redirect sends the browser to another page of the dashboard.
func (c *call) redirect(path string) error {
	c.http.Response.ResetBody()
	// Keep the path relative: fasthttp's Redirect builds an absolute URL from the Host header, which the client controls.
	c.http.Response.Header.Set(fasthttp.HeaderLocation, path)
	c.http.SetStatusCode(fasthttp.StatusSeeOther)
	return nil
}

// seeOther answers a successful form: the browser loads path, which shows the text once.
func (c *call) seeOther(path, text string) error {
	c.setNotice(notice{Text: text})
	return c.redirect(path)
}

// problems are the error messages of a form by field name; "" is the form as a whole.
type problems map[string]string

// pageWords are the pages' words for what the API names otherwise.
var pageWords = strings.NewReplacer("A long URL is required.", "Enter a destination.", "long URL", "destination",
	"The weights must be integers of 1 to 99 that sum up to 100.", "Percentages must add up to 100.")

// problemsOf returns the messages of an error of CodeInvalid that has fields. Form fields have the same names as the
// error's fields.
func problemsOf(err error) (problems, bool) {
	e, ok := asError(err)
	if !ok || e.Code != schema.CodeInvalid || len(e.Fields) == 0 {
		return nil, false
	}
	p := problems{}
	for field, messages := range e.Fields {
		p[field] = pageWords.Replace(strings.Join(messages, " "))
	}
	return p, true
}

// attach marks the answer as a file download. name needs no escaping.
func (c *call) attach(name, contentType string) {
	c.http.SetContentType(contentType)
	c.http.Response.Header.Set(fasthttp.HeaderContentDisposition, fmt.Sprintf("attachment; filename=%q", name))
}

// values returns the values of a field of the form that occurs several times.
func (c *call) values(name string) (all []string) {
	for _, value := range c.http.PostArgs().PeekMulti(name) {
		all = append(all, clean(value))
	}
	return all
}

// ids returns the IDs that the fields id of the form have, in ascending order, each once.
func (c *call) ids() (ids []int64) {
	for _, value := range c.values("id") {
		if id := parseID(value); id > 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
