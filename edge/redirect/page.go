package redirect

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"

	"github.com/valyala/fasthttp"

	"linkstream/edge/resolve"
	"linkstream/schema"
)

//go:embed page.html
var pageHTML string

// page is a complete answer for people to read.
type page struct {
	status int
	body   []byte
	csp    string
}

// pages are all pages. They are rendered once.
type pages struct {
	template *template.Template

	front, notFound, gone, takenDown, unsafe page
	deleted, expired                         page
	tooMany, failed, unavailable, badMethod  page
	badRequest, badVersion, badCoding        page
	timeout, bodyTooLarge, headerTooLarge    page
}

func newPages() *pages {
	t := template.Must(template.New("page").Parse(pageHTML))
	return &pages{
		template: t,

		front: newPage(t, fasthttp.StatusOK, "Short links",
			"This host serves short links. Each of them redirects to another address on the web."),
		notFound: newPage(t, fasthttp.StatusNotFound, "Link not found",
			"There is no link at this address. Please check that you copied all of it."),
		gone: newPage(t, fasthttp.StatusGone, "This link is inactive",
			"This link has been deactivated."),
		takenDown: newPage(t, fasthttp.StatusGone, "This link was taken down",
			"The operator of this service has taken down this link."),
		unsafe: newPage(t, fasthttp.StatusGone, "This link leads to an unsafe site",
			"This link was stopped for your protection, because the site it leads to is known as unsafe."),
		deleted: newPage(t, fasthttp.StatusGone, "This link was deleted",
			"Its owner has deleted this link."),
		expired: newPage(t, fasthttp.StatusGone, "This link has expired",
			"Its owner has set an end to this link, which has passed."),
		tooMany: newPage(t, fasthttp.StatusTooManyRequests, "Too many requests",
			"Too many links that do not exist, or pages about links, were requested from your network. Please try again in a few seconds."),
		failed: newPage(t, fasthttp.StatusInternalServerError, "Something went wrong",
			"An error occurred while opening this link. Please try again later."),
		unavailable: newPage(t, fasthttp.StatusServiceUnavailable, "Temporarily unavailable",
			"This link cannot be looked up right now. Please try again in a few seconds."),
		badMethod: newPage(t, fasthttp.StatusMethodNotAllowed, "Method not allowed",
			"Short links support the methods GET and HEAD."),
		badRequest: newPage(t, fasthttp.StatusBadRequest, "Invalid request",
			"This is not a valid HTTP request."),
		badVersion: newPage(t, fasthttp.StatusHTTPVersionNotSupported, "Version not supported",
			"Short links support the versions 1.0 and 1.1 of HTTP."),
		badCoding: newPage(t, fasthttp.StatusNotImplemented, "Transfer coding not supported",
			"Short links support no transfer coding but chunked."),
		timeout: newPage(t, fasthttp.StatusRequestTimeout, "Request timeout",
			"The request took too long to arrive. Please try again."),
		bodyTooLarge: newPage(t, fasthttp.StatusRequestEntityTooLarge, "Request too large",
			"The body of this request is too large. Short links need no body."),
		headerTooLarge: newPage(t, fasthttp.StatusRequestHeaderFieldsTooLarge, "Request too large",
			"The header of this request is too large."),
	}
}

// content is what the template of a page takes.
type content struct {
	Title, Text     string
	Target, Created string // of the page about a link
}

// newPage renders a page that is always the same.
func newPage(t *template.Template, status int, title, text string) page {
	return render(t, status, content{Title: title, Text: text})
}

// preview renders the page about a link. It shows the address in the form that browsers are sent to, so that look-alike
// characters of other scripts are seen.
func (p *pages) preview(target resolve.Target, link schema.Link) *page {
	c := content{Title: link.Title, Text: "This short link leads to", Target: string(target.Location),
		Created: link.CreatedAt.UTC().Format("2 January 2006")}
	if c.Title == "" {
		c.Title = "Where this link leads"
	}
	page := render(p.template, fasthttp.StatusOK, c)
	return &page
}

// render renders a page. Its content security policy forbids everything except for its own style element.
func render(t *template.Template, status int, c content) page {
	var body bytes.Buffer
	if err := t.Execute(&body, c); err != nil {
		panic(fmt.Sprintf("render page %q: %v", c.Title, err)) // the template is a constant, and the buffer takes everything
	}
	_, style, _ := bytes.Cut(body.Bytes(), []byte("<style>"))
	style, _, _ = bytes.Cut(style, []byte("</style>"))
	digest := sha256.Sum256(style)
	return page{
		status: status,
		body:   body.Bytes(),
		csp: fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
			base64.StdEncoding.EncodeToString(digest[:])),
	}
}

// answer answers ctx with the page.
func (p *page) answer(ctx *fasthttp.RequestCtx) {
	ctx.SetStatusCode(p.status)
	ctx.SetContentType("text/html; charset=utf-8")
	header := &ctx.Response.Header
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Security-Policy", p.csp)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Robots-Tag", "noindex")
	ctx.Response.SetBodyRaw(p.body)
}
