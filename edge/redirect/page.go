package redirect

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"slices"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/text/language"

	"linkstream/edge/resolve"
	"linkstream/schema"
)

//go:embed page.html
var pageHTML string

//go:embed card.html
var cardHTML string

// page is a complete answer for people to read.
type page struct {
	status   int
	language string    // "": the link owner's text, in any language
	body     [3][]byte // a brand's style and mark stand between them
	style    string    // the source of the page's own style
	hasForm  bool
}

// pages are all pages. They are rendered once, except for those about links.
type pages struct {
	template, cardTemplate *template.Template

	matcher language.Matcher
	visitor []visitorPages // in the order of languages

	badMethod, badRequest, badVersion, badCoding       page
	timeout, bodyTooLarge, headerTooLarge, pathTooLong page
}

// visitorPages are the pages that visitors see, in one language.
type visitorPages struct {
	text texts

	front, notFound, gone, takenDown, unsafe page
	deleted, expired                         page
	tooMany, failed, unavailable             page

	password, wrongPassword, waitPassword, locked page
}

func newPages() *pages {
	t := template.Must(template.New("page").Parse(pageHTML))
	english := func(status int, title, text string) page {
		return newPage(t, languages[0], status, message{title, text})
	}
	p := &pages{
		template: t, cardTemplate: template.Must(template.New("card").Parse(cardHTML)),
		matcher: language.NewMatcher(languages),

		badMethod: english(fasthttp.StatusMethodNotAllowed, "Method not allowed",
			"Short links support the methods GET and HEAD."),
		badRequest: english(fasthttp.StatusBadRequest, "Invalid request", "This is not a valid HTTP request."),
		badVersion: english(fasthttp.StatusHTTPVersionNotSupported, "Version not supported",
			"Short links support the versions 1.0 and 1.1 of HTTP."),
		badCoding: english(fasthttp.StatusNotImplemented, "Transfer coding not supported",
			"Short links support no transfer coding but chunked."),
		timeout: english(fasthttp.StatusRequestTimeout, "Request timeout",
			"The request took too long to arrive. Please try again."),
		bodyTooLarge: english(fasthttp.StatusRequestEntityTooLarge, "Request too large",
			"The body of this request is too large. Short links need no body."),
		headerTooLarge: english(fasthttp.StatusRequestHeaderFieldsTooLarge, "Request too large",
			"The header of this request is too large."),
		pathTooLong: english(fasthttp.StatusRequestURITooLong, "Address too long",
			"The address that this link leads to would have more than 8 KiB."),
	}
	for _, tag := range languages {
		p.visitor = append(p.visitor, newVisitorPages(t, tag))
	}
	return p
}

func newVisitorPages(t *template.Template, tag language.Tag) visitorPages {
	text := readTexts(tag)
	in := func(status int, m message) page { return newPage(t, tag, status, m) }
	return visitorPages{
		text:        text,
		front:       in(fasthttp.StatusOK, text.Front),
		notFound:    in(fasthttp.StatusNotFound, text.NotFound),
		gone:        in(fasthttp.StatusGone, text.Gone),
		takenDown:   in(fasthttp.StatusGone, text.TakenDown),
		unsafe:      in(fasthttp.StatusGone, text.Unsafe),
		deleted:     in(fasthttp.StatusGone, text.Deleted),
		expired:     in(fasthttp.StatusGone, text.Expired),
		tooMany:     in(fasthttp.StatusTooManyRequests, text.TooMany),
		failed:      in(fasthttp.StatusInternalServerError, text.Failed),
		unavailable: in(fasthttp.StatusServiceUnavailable, text.Unavailable),

		password:      text.Password.page(t, tag, fasthttp.StatusOK, ""),
		wrongPassword: text.Password.page(t, tag, fasthttp.StatusOK, text.Password.Wrong),
		waitPassword:  text.Password.page(t, tag, fasthttp.StatusTooManyRequests, text.Password.Wait),
		locked:        in(fasthttp.StatusOK, text.Password.message),
	}
}

// forVisitor returns the pages in the language of a request.
func (p *pages) forVisitor(ctx *fasthttp.RequestCtx) *visitorPages {
	return &p.visitor[matchLanguage(p.matcher, ctx.Request.Header.Peek(fasthttp.HeaderAcceptLanguage))]
}

// content is the data of a page's template.
type content struct {
	Language        string
	Title, Text     string
	Target, Created string // of the page about a link
	Form            *passwordForm
}

// passwordForm is the form of the page that asks for a link's password.
type passwordForm struct{ Label, Button, Problem string }

// newPage renders a page that is always the same.
func newPage(t *template.Template, tag language.Tag, status int, m message) page {
	return render(t, tag.String(), status, content{Language: tag.String(), Title: m.Title, Text: m.Text})
}

// page renders a page that asks for a link's password.
func (p *passwordTexts) page(t *template.Template, tag language.Tag, status int, problem string) page {
	return render(t, tag.String(), status, content{Language: tag.String(), Title: p.Title, Text: p.Text,
		Form: &passwordForm{p.Label, p.Button, problem}})
}

// preview renders the page about a link. It shows the address in the form that browsers are sent to, so that look-alike
// characters of other scripts are seen.
func (p *pages) preview(ctx *fasthttp.RequestCtx, target resolve.Target, link schema.Link) *page {
	in := matchLanguage(p.matcher, ctx.Request.Header.Peek(fasthttp.HeaderAcceptLanguage))
	text := &p.visitor[in].text
	tag := languages[in].String()
	page := render(p.template, tag, fasthttp.StatusOK,
		content{Language: tag, Title: cmp.Or(link.Title, text.Preview.Title),
			Text: text.Preview.Text, Target: string(target.Location),
			Created: text.Created + " " + link.CreatedAt.UTC().Format(time.DateOnly)})
	return &page
}

// card renders the page that programs get which draw previews (https://ogp.me, and Twitter's summary cards). location
// is where the link leads, and site the name of the domain, "" if it has none.
func (p *pages) card(card resolve.Card, location []byte, site string) *page {
	page := render(p.cardTemplate, "", fasthttp.StatusOK, struct {
		resolve.Card
		Target, Site string
	}{card, string(location), site})
	return &page
}

// render renders a page.
func render(t *template.Template, language string, status int, content any) page {
	var body bytes.Buffer
	if err := t.Execute(&body, content); err != nil {
		panic(fmt.Sprintf("render page %q: %v", t.Name(), err)) // the template is a constant, and the buffer takes everything
	}
	_, style, _ := bytes.Cut(body.Bytes(), []byte("<style>"))
	style, _, _ = bytes.Cut(style, []byte("</style>"))
	head, rest, _ := bytes.Cut(body.Bytes(), []byte("</head>"))
	top, main, _ := bytes.Cut(rest, []byte("<main>\n"))
	return page{status: status, language: language, style: styleSource(style),
		hasForm: bytes.Contains(main, []byte("<form")),
		body:    [3][]byte{head, slices.Concat([]byte("</head>"), top, []byte("<main>\n")), main}}
}

// answer answers ctx with the page. Its content security policy forbids everything except for its style elements.
func (p *page) answer(ctx *fasthttp.RequestCtx, b *brand) {
	formAction := "form-action 'none'; "
	if p.hasForm {
		formAction = "" // browsers apply it also to where the answer redirects
	}
	ctx.SetStatusCode(p.status)
	ctx.SetContentType("text/html; charset=utf-8")
	header := &ctx.Response.Header
	header.Set("Cache-Control", "no-store")
	if p.language != "" {
		header.Set("Content-Language", p.language)
		header.Set("Vary", "Accept-Language")
	}
	header.Set("Content-Security-Policy", "default-src 'none'; style-src "+p.style+" "+b.source+"; base-uri 'none'; "+
		formAction+"frame-ancestors 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Robots-Tag", "noindex")
	ctx.Response.SetBodyRaw(slices.Concat(p.body[0], []byte(b.style), p.body[1], []byte(b.mark), p.body[2]))
}
