package dashboard

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/valyala/fasthttp"

	"linkstream/schema"
)

// brand is what a page shows of a domain instead of the service's mark.
type brand struct {
	Name  string
	Tint  schema.Color
	Sheet string // path of a stylesheet; "": the domain has no colour of its own
}

const pathBrand = Root + "/brand/"

func newBrand(domain schema.Domain) *brand {
	b := &brand{Name: cmp.Or(domain.Name, domain.Host), Tint: schema.SiteColor(domain.Color)}
	if b.Tint != schema.DefaultColor {
		b.Sheet = pathBrand + b.Tint.String()[1:] + ".css"
	}
	return b
}

// Letter returns the letter of the mark.
func (b *brand) Letter() string { return schema.SiteLetter(b.Name) }

// The darkest back of text of light pages, and the lightest one of dark pages: a card with an eighth of black or white.
var (
	lightBack = schema.Color{R: 0xe0, G: 0xe0, B: 0xe0}
	darkBack  = schema.Color{R: 0x35, G: 0x39, B: 0x37}
)

// answerBrand answers with the stylesheet of a colour, whatever the colour is: it tells nothing of domains. Text in the
// colour, and on it, can be read.
func (d *Dashboard) answerBrand(c *call) error {
	name, isSheet := strings.CutSuffix(c.pathValue("file"), ".css")
	color, err := schema.ParseColor("#" + name)
	if !isSheet || err != nil {
		return errNoPage
	}
	scheme := func(name string, back schema.Color) string {
		accent := color.On(back)
		return fmt.Sprintf("@media (forced-colors: none) and (prefers-color-scheme: %s) { :root { "+
			"--accent:%v;--on-accent:%v;--accent-hover: color-mix(in srgb, var(--accent) 80%%, var(--text));"+
			"--accent-back: color-mix(in srgb, var(--accent) 12%%, var(--card)); --fill: var(--accent-back);"+
			"--people: var(--accent) } }\n", name, accent, accent.Text())
	}
	c.http.SetContentType(contentType(".css"))
	c.http.Response.Header.Set(fasthttp.HeaderCacheControl, "public, max-age=3600")
	c.http.SetBodyString(scheme("light", lightBack) + scheme("dark", darkBack))
	return nil
}
