package dashboard_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"linkstream/api/apiservice"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// Shared reports of a domain's links carry its name and colour.
func TestBrands(t *testing.T) {
	s := start(t, unpaced)
	domain, plain := s.addDomain(t, "go.example.org", true), s.addDomain(t, "plain.example.org", true)
	testkit.Must(t, s.links.SetSite(t.Context(), domain.ID,
		schema.Site{Name: "Müller & Söhne", Color: "#ffd400"}, schema.AppLinks{}))
	link := schema.Link{AccountID: s.account.ID, DomainID: domain.ID, Hash: "sale", URL: "https://example.org/",
		Active: true, CreatedAt: s.now()}
	testkit.Must(t, s.links.CreateLink(t.Context(), &link))
	owner, reader := s.signedIn(t), s.browser(t)
	for _, page := range []struct {
		fields []string
		brand  string // ends the title, and is in the bar
		color  string
	}{
		{[]string{"hash", "sale", "domain_id", id(domain.ID)}, "Müller &amp; Söhne", "ffd400"},
		{[]string{"domain_id", id(domain.ID)}, "Müller &amp; Söhne", "ffd400"},
		{[]string{"domain_id", id(plain.ID)}, "plain.example.org", ""},
		{[]string{"domain_id", "0"}, "linkstream", ""},
		{nil, "linkstream", ""},
	} {
		path := owner.share(t, page.fields...)
		seen := reader.get(path)
		wantReadable(t, seen, path)
		bar := regexp.MustCompile(`(?s)<header.*</header>`).FindString(seen.body)
		if !strings.Contains(seen.body, " · "+page.brand+"</title>") || !strings.Contains(bar, ">"+page.brand+"<") {
			t.Errorf("%v: the page is not of %s: %s", page.fields, page.brand, bar)
		}
		sheet := regexp.MustCompile(`/dashboard/brand/(.*?)\.css`).FindStringSubmatch(seen.body)
		if sheet == nil {
			sheet = []string{"", ""}
		}
		testkit.Equal(t, fmt.Sprint("colour of ", page.fields), sheet[1], page.color)
		if page.color != "" && !strings.Contains(bar, `fill="#`+page.color+`"`) {
			t.Errorf("%v: the mark is %s", page.fields, bar)
		}
	}
}

// Shared reports of all links carry the name and the colour that the operator gives to the default domain.
func TestBrandOfTheDefaultDomain(t *testing.T) {
	for _, c := range []struct {
		site schema.Site
		want []string
	}{
		{schema.Site{Name: "Acme", Color: "#ffd400"}, []string{" · Acme</title>", `/dashboard/brand/ffd400.css`}},
		{schema.Site{Color: "#ffd400"}, []string{" · sho.rt</title>", `/dashboard/brand/ffd400.css`}},
		{schema.Site{Name: "Acme"}, []string{" · Acme</title>"}},
	} {
		s := start(t, unpaced, func(cfg *apiservice.Config) { cfg.Site = c.site })
		path := s.signedIn(t).share(t)
		seen := s.browser(t).get(path)
		wantReadable(t, seen, path)
		for _, want := range c.want {
			if !strings.Contains(seen.body, want) {
				t.Errorf("%+v: the page has no %s", c.site, want)
			}
		}
	}
}

// Text in the colour, and on it, can be read, whatever the colour is.
func TestBrandColors(t *testing.T) {
	s := start(t)
	b := s.browser(t)
	values := regexp.MustCompile(`--accent:(#\w+);--on-accent:(#\w+)`)
	parse := func(text string) schema.Color {
		c, err := schema.ParseColor(text)
		testkit.Must(t, err)
		return c
	}
	for _, color := range []string{"ffd400", "ffffff", "000000", "808080", "0000ff", "0b7268", "ff0000"} {
		page := b.get("/dashboard/brand/" + color + ".css")
		testkit.Equal(t, "status", page.status, http.StatusOK)
		testkit.Equal(t, "type", page.header.Get("Content-Type"), "text/css; charset=utf-8")
		schemes := values.FindAllStringSubmatch(page.body, -1)
		testkit.Equal(t, "schemes", len(schemes), 2)
		for i, card := range []schema.Color{parse("#ffffff"), parse("#191e1c")} {
			accent, on := parse(schemes[i][1]), parse(schemes[i][2])
			mixed := func(a, b uint8) uint8 { return uint8(float64(a)*.12 + float64(b)*.88) } // --accent-back
			back := schema.Color{R: mixed(accent.R, card.R), G: mixed(accent.G, card.G), B: mixed(accent.B, card.B)}
			for _, behind := range []schema.Color{card, back} {
				if accent.Contrast(behind) < schema.TextContrast {
					t.Errorf("%s: %v on %v has the contrast %.2f", color, accent, behind, accent.Contrast(behind))
				}
			}
			if accent.Contrast(on) < schema.TextContrast {
				t.Errorf("%s: %v on %v has the contrast %.2f", color, on, accent, accent.Contrast(on))
			}
		}
	}
	for _, none := range []string{"ffd40", "ffd4000", "zzzzzz", "%23ffd40", "red"} {
		b.get("/dashboard/brand/"+none+".css").want(t, http.StatusNotFound)
	}
	b.get("/dashboard/brand/ffd400").want(t, http.StatusNotFound)
}
