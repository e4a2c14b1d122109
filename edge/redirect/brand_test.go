package redirect_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

var (
	markElement  = regexp.MustCompile(`<div class="mark"><span aria-hidden="true">(.*?)</span><bdi>(.*?)</bdi></div>`)
	styleElement = regexp.MustCompile(`(?s)<style>(.*?)</style>`)
	attribute    = regexp.MustCompile(`<[^>]* (style|on\w+|src)=`)
)

// Pages carry the name and the colour of their domain, in each language.
func TestBrands(t *testing.T) {
	const hostile = `"><script>alert(1)</script>` + "\u202e&"
	e := newEdge(t, func(e *edge) { e.site = schema.Site{Name: "Müller & Söhne", Color: "#FFD400"} })
	sites := []struct {
		host, letter, name, color string
		domain                    int64
	}{
		{"sho.rt", "M", "Müller & Söhne", "--brand:#ffd400;--on:#000000", 0},
		{"127.0.0.1", "M", "Müller & Söhne", "--brand:#ffd400;--on:#000000", 0},
		{"go.example.com", "S", hostile, "--brand:#0b7268;--on:#ffffff", 1},
		{"emoji.example.com", "☃", "☃", "--brand:#ffffff;--on:#000000", 2},
		{"plain.example.com", "P", "plain.example.com", "--brand:#0b7268;--on:#ffffff", 3},
	}
	for i, site := range sites[2:] {
		testkit.Equal(t, "domain", e.domain(t, site.host, true), int64(i)+1)
	}
	setSite(t, e, 1, schema.Site{Name: hostile})
	setSite(t, e, 2, schema.Site{Name: "☃", Color: "#ffffff"})
	for domain := range int64(4) {
		for _, link := range []schema.Link{{Hash: "there"}, {Hash: "off"}, {Hash: "down"}, {Hash: "deleted"},
			{Hash: "unsafe", URL: "https://unsafe.example/"}, {Hash: "expired", ExpiresAt: time.Now().Add(-time.Hour)},
			{Hash: "secret", Behaviour: &schema.Behaviour{Password: 1}}} {
			if link.DomainID = domain; link.URL == "" {
				link.URL = "https://example.com/"
			}
			if link = e.create(t, link); link.Hash == "deleted" {
				testkit.Must(t, e.store.DeleteLink(t.Context(), link, time.Now()))
			}
		}
		testkit.Must(t, e.store.SetTakenDown(t.Context(), domain, "down", true))
		storetest.SetActive(t, e.store, domain, "off", false)
	}
	addr := e.serve(t, 1)
	for _, site := range sites {
		for _, path := range []string{"/", "/nothing", "/off", "/down", "/unsafe", "/deleted", "/expired", "/there+",
			"/secret", "/secret+"} {
			for _, tag := range []string{"en", "de", "fr", "es", "pt", "it", "nl", "pl", "ja", "zh"} {
				resp, body := send(t, addr, "GET", "http://"+site.host+path, "Accept-Language", tag)
				where := fmt.Sprintf("%s%s in %s", site.host, path, tag)
				mark := markElement.FindStringSubmatch(body)
				if mark == nil || mark[1] != site.letter || html.UnescapeString(mark[2]) != site.name {
					t.Errorf("%s: mark %q", where, mark)
				}
				if !strings.Contains(body, "<style>:root{"+site.color+";--ink:#") || strings.Contains(body, "<script") ||
					attribute.MatchString(body) || len(body) > 4<<10 {
					t.Errorf("%s: %d bytes: %s", where, len(body), body)
				}
				policy := "default-src 'none'; style-src"
				for _, style := range styleElement.FindAllStringSubmatch(body, -1) {
					digest := sha256.Sum256([]byte(style[1]))
					policy += " 'sha256-" + base64.StdEncoding.EncodeToString(digest[:]) + "'"
				}
				if got := resp.Header.Get("Content-Security-Policy"); !strings.HasPrefix(got, policy+"; base-uri 'none'; ") {
					t.Errorf("%s: %s, want %s", where, got, policy)
				}
			}
		}
	}
	t.Run("a page of an unknown domain has none", func(t *testing.T) {
		_, body := send(t, addr, "GET", "http://unknown.example.com/")
		if strings.Contains(body, `class="mark"`) || !strings.Contains(body, "--brand:#0b7268") {
			t.Error(body)
		}
	})
	t.Run("a card has the name, if there is one", func(t *testing.T) {
		for domain, want := range map[int64]bool{0: true, 1: true, 3: false} {
			e.create(t, schema.Link{DomainID: domain, Hash: "card", URL: "https://example.com/",
				Behaviour: &schema.Behaviour{Card: &schema.Card{Title: "A card"}}})
			host := map[int64]string{0: "sho.rt", 1: "go.example.com", 3: "plain.example.com"}[domain]
			_, body := send(t, addr, "GET", "http://"+host+"/card", "User-Agent", "Twitterbot/1.0")
			if strings.Contains(body, `<meta property="og:site_name"`) != want || !strings.Contains(body, "A card") ||
				strings.Contains(body, "<script") || strings.Contains(body, "<style") {
				t.Errorf("%s: %s", host, body)
			}
		}
	})
	t.Run("a change is on the next page", func(t *testing.T) {
		setSite(t, e, 3, schema.Site{Name: "New", Color: "#b3261e"})
		_, body := send(t, addr, "GET", "http://plain.example.com/off")
		if !strings.Contains(body, "<bdi>New</bdi>") || !strings.Contains(body, "--brand:#b3261e") {
			t.Error(body)
		}
	})
}

// setSite sets the site of a domain of TestBrands.
func setSite(t *testing.T, e *edge, domain int64, site schema.Site) {
	t.Helper()
	testkit.Must(t, e.store.SetSite(t.Context(), domain, site, schema.AppLinks{}))
	host, err := e.store.Domain(t.Context(), domain)
	testkit.Must(t, err)
	e.resolver.Drop(schema.Change{Host: host.Host})
}
