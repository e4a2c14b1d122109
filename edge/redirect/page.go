package redirect

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"

	"github.com/valyala/fasthttp"
)

//go:embed page.html
var pageHTML string

// page is a whole answer for people to read, made once.
type page struct {
	status int
	body   []byte
	csp    string
}

// pages are all there are.
type pages struct {
	front, notFound, gone, failed, unavailable, badMethod page
	badRequest, timeout, bodyTooLarge, headerTooLarge     page
}

func newPages() *pages {
	t := template.Must(template.New("page").Parse(pageHTML))
	return &pages{
		front: newPage(t, fasthttp.StatusOK, "Short links",
			"This host serves short links. Each one is an address here that leads on to another place on the web."),
		notFound: newPage(t, fasthttp.StatusNotFound, "There is no such link",
			"Nothing is found at this address. Please check that it was copied whole."),
		gone: newPage(t, fasthttp.StatusGone, "This link is switched off",
			"The short link exists, but it leads nowhere at present."),
		failed: newPage(t, fasthttp.StatusInternalServerError, "Something went wrong",
			"This link cannot be followed at the moment. Please try again later."),
		unavailable: newPage(t, fasthttp.StatusServiceUnavailable, "Please try again",
			"This link cannot be looked up at the moment. Please try again in a few seconds."),
		badMethod: newPage(t, fasthttp.StatusMethodNotAllowed, "Links can only be followed",
			"A short link answers the methods GET and HEAD."),
		badRequest: newPage(t, fasthttp.StatusBadRequest, "This request makes no sense",
			"What was sent is not a valid HTTP request."),
		timeout: newPage(t, fasthttp.StatusRequestTimeout, "This took too long",
			"The request did not arrive in time. Please try again."),
		bodyTooLarge: newPage(t, fasthttp.StatusRequestEntityTooLarge, "This request is too large",
			"A request for a short link needs no body."),
		headerTooLarge: newPage(t, fasthttp.StatusRequestHeaderFieldsTooLarge, "This request is too large",
			"The request's header has more bytes than are accepted here."),
	}
}

// newPage renders a page. It may load nothing and run nothing; of styles, just its own.
func newPage(t *template.Template, status int, title, text string) page {
	var body bytes.Buffer
	if err := t.Execute(&body, struct{ Title, Text string }{title, text}); err != nil {
		panic(fmt.Sprintf("render page %q: %v", title, err)) // the template is a constant
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

// answer makes the page the answer of ctx.
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
