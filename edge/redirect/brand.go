package redirect

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"

	"linkstream/edge/resolve"
	"linkstream/schema"
)

// brand is what pages show of a domain.
type brand struct {
	style  string // an element with the colours
	source string // of the style, for content security policies
	mark   string // an element with the name; "": none
}

// The colours of page.html behind text.
var (
	lightCard = schema.Color{R: 0xff, G: 0xff, B: 0xff}
	darkCard  = schema.Color{R: 0x19, G: 0x1e, B: 0x1c}
)

// newBrand returns the brand of a domain with a name and a colour. Text on the colour, and in it, can be read, whatever
// the colour is.
func newBrand(name string, color schema.Color) *brand {
	style := fmt.Sprintf(":root{--brand:%v;--on:%v;--ink:%v}@media(prefers-color-scheme:dark){:root{--ink:%v}}",
		color, color.Text(), color.On(lightCard), color.On(darkCard))
	b := &brand{style: "<style>" + style + "</style>\n", source: styleSource([]byte(style))}
	if name != "" {
		b.mark = `<div class="mark"><span aria-hidden="true">` + html.EscapeString(schema.SiteLetter(name)) + `</span><bdi>` +
			html.EscapeString(name) + "</bdi></div>\n"
	}
	return b
}

// nameless is the brand of pages whose domain is not known.
var nameless = newBrand("", schema.DefaultColor)

// styleSource returns the source of a style element's text for content security policies.
func styleSource(style []byte) string {
	digest := sha256.Sum256(style)
	return "'sha256-" + base64.StdEncoding.EncodeToString(digest[:]) + "'"
}

// shownBrand is the brand of the last page. Most pages of a flood are of one domain.
type shownBrand struct {
	name, color string
	brand       *brand
}

// brand returns the brand of a target's domain: without a name its host, and nothing of an unknown one.
func (h *Handler) brand(target *resolve.Target) *brand {
	name, host, color := h.resolver.Brand(target)
	name = cmp.Or(name, host)
	if last := h.lastBrand.Load(); last != nil && last.name == name && last.color == color {
		return last.brand
	}
	shown := &shownBrand{name, color, newBrand(name, schema.SiteColor(color))}
	h.lastBrand.Store(shown)
	return shown.brand
}

// show answers a request with a page of a target's domain.
func (h *Handler) show(q *request, target resolve.Target, p *page) {
	p.answer(q.RequestCtx, h.brand(&target))
}

// showCard answers a program that draws previews. People do not see the page, which has no look.
func (h *Handler) showCard(q *request, target resolve.Target, card resolve.Card) {
	name, _, _ := h.resolver.Brand(&target)
	h.pages.card(card, target.Location, name).answer(q.RequestCtx, new(brand))
}
