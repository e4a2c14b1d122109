package dashboard

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"linkstream/schema"
)

// call is one request.
type call struct {
	ctx       context.Context // bounds what the stores are asked
	http      *fasthttp.RequestCtx
	dashboard *Dashboard

	account schema.Account // the zero value unless signedIn
	session schema.Session
	csrf    string // the session's token, which stands in all its forms
}

// signedIn reports whether the request came with a valid session of an account that is not suspended.
func (c *call) signedIn() bool { return c.session.ID != 0 }

// form returns a field of the form that was posted, without blanks at its ends, as valid UTF-8. A form has at most as
// many bytes as a body.
func (c *call) form(name string) string { return clean(c.http.PostArgs().Peek(name)) }

// secret returns a field exactly as it was typed.
func (c *call) secret(name string) string { return string(c.http.PostArgs().Peek(name)) }

// formID returns a field that holds an ID of a store; 0, which is none, if it does not.
func (c *call) formID(name string) int64 { return parseID(c.form(name)) }

// query returns a parameter of the URL, like form.
func (c *call) query(name string) string { return clean(c.http.QueryArgs().Peek(name)) }

// pathValue returns the part of the path that the route's pattern names, unescaped.
func (c *call) pathValue(name string) string {
	value, _ := c.http.UserValue(name).(string)
	value, err := url.PathUnescape(value)
	if err != nil {
		return ""
	}
	return clean([]byte(value))
}

// pathID returns the part of the path that the route's pattern names as an ID of a store; 0 if it is none.
func (c *call) pathID(name string) int64 { return parseID(c.pathValue(name)) }

// page returns the number of the page of a list that the parameter "page" asks for: 1 if it asks for none.
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

// peer returns the address that the connection came from.
func (c *call) peer() netip.Addr {
	if addr, ok := c.http.RemoteAddr().(*net.TCPAddr); ok {
		return addr.AddrPort().Addr()
	}
	return netip.Addr{}
}

// redirect has the browser get another page of the dashboard.
func (c *call) redirect(path string) error {
	c.http.Response.ResetBody()
	// In the original spelling: fasthttp's own Redirect would make the address absolute from what the client sent as Host.
	c.http.Response.Header.Set(fasthttp.HeaderLocation, path)
	c.http.SetStatusCode(fasthttp.StatusSeeOther)
	return nil
}

// seeOther answers a form that was taken: the browser gets path, which shows notice once.
func (c *call) seeOther(path, notice string) error {
	c.setNotice(notice)
	return c.redirect(path)
}

// problems are what is wrong with a form, by the name of the field; "" is the form as a whole.
type problems map[string]string

// problemsOf returns the problems that err names, if it is one of CodeInvalid that names any. A field's name in the
// form is that in the error.
func problemsOf(err error) (problems, bool) {
	e, ok := asError(err)
	if !ok || e.Code != schema.CodeInvalid || len(e.Fields) == 0 {
		return nil, false
	}
	p := problems{}
	for field, messages := range e.Fields {
		p[field] = strings.Join(messages, " ")
	}
	return p, true
}
