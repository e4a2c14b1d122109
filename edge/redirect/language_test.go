package redirect_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

var (
	heading   = regexp.MustCompile(`<h1>(.*)</h1>`)
	paragraph = regexp.MustCompile(`<p>(.*)</p>`)
)

func TestLanguages(t *testing.T) {
	e := newEdge(t, nil)
	e.link(t, 0, "there", "https://example.com/")
	e.link(t, 0, "off", "https://example.com/")
	e.link(t, 0, "down", "https://example.com/")
	e.link(t, 0, "unsafe", "https://unsafe.example/")
	e.create(t, schema.Link{Hash: "secret", URL: "https://example.com/", Behaviour: &schema.Behaviour{Password: 1}})
	e.create(t, schema.Link{Hash: "expired", URL: "https://example.com/", ExpiresAt: time.Now().Add(-time.Hour)})
	deleted := e.create(t, schema.Link{Hash: "deleted", URL: "https://example.com/"})
	testkit.Must(t, e.store.DeleteLink(t.Context(), deleted, time.Now()))
	testkit.Must(t, e.store.SetTakenDown(t.Context(), 0, "down", true))
	storetest.SetActive(t, e.store, 0, "off", false)
	addr := e.serve(t, 1)
	said := func(t *testing.T, path, accepted, want string) []string {
		t.Helper()
		resp, body := send(t, addr, "GET", "http://sho.rt"+path, "Accept-Language", accepted)
		if resp.Header.Get("Content-Language") != want || resp.Header.Get("Vary") != "Accept-Language" ||
			!strings.Contains(body, `<html lang="`+want+`">`) {
			t.Errorf("%s in %q: %v", path, accepted, resp.Header)
		}
		texts := []string{heading.FindString(body)}
		return append(texts, paragraph.FindAllString(body, -1)...)
	}
	all := []string{"en", "de", "fr", "es", "pt", "it", "nl", "pl", "ja", "zh"}
	for _, path := range []string{"/", "/nothing", "/off", "/down", "/unsafe", "/deleted", "/expired", "/there+",
		"/secret"} {
		t.Run("each page is in each language: "+path, func(t *testing.T) {
			seen := map[string]string{}
			for _, tag := range all {
				texts := said(t, path, tag, tag)
				if len(texts) < 2 {
					t.Errorf("%s: %q", tag, texts)
				}
				for _, text := range texts {
					if strings.Contains(text, "example.com") {
						continue
					}
					if strings.Contains(text, "><") || seen[text] != "" {
						t.Errorf("%s: %q, as in %q", tag, text, seen[text])
					}
					seen[text] = tag
				}
			}
		})
	}
	t.Run("the first language of the visitor that has texts", func(t *testing.T) {
		for accepted, want := range map[string]string{
			"": "en", "de-AT,de;q=0.9,en;q=0.8": "de", "fi, fr-CA;q=0.5, de;q=0.1": "fr", "pt-BR": "pt", "zh-Hant-TW": "zh",
			"zh-CN,zh;q=0.9": "zh",
			"en;q=0.1, ja":   "ja", "fi": "en", "*": "en", "nonsense=;,;": "en", strings.Repeat("de,", 200): "en",
			"de;q=0, nl": "nl",
		} {
			said(t, "/nothing", accepted, want)
		}
	})
	t.Run("pages about trouble", func(t *testing.T) {
		e.store.inject(func() error { return errors.New("connection refused") })
		defer e.store.inject(nil)
		if texts := said(t, "/another", "de", "de"); !strings.Contains(texts[0], "nicht verfügbar") {
			t.Errorf("%q", texts)
		}
	})
}

func TestNoLanguageLacksAText(t *testing.T) {
	field := regexp.MustCompile(`"(\w+)": (?:"(.*)"|\{)`)
	read := func(path string) (names []string) {
		file, err := os.ReadFile(path)
		testkit.Must(t, err)
		for _, m := range field.FindAllStringSubmatch(string(file), -1) {
			if names = append(names, m[1]); m[2] == "" && !strings.HasSuffix(m[0], "{") {
				t.Errorf("%s: %s is empty", path, m[1])
			}
		}
		return names
	}
	files, err := filepath.Glob("languages/*.json")
	testkit.Must(t, err)
	testkit.Equal(t, "languages", len(files), 10)
	for _, path := range files {
		testkit.Equal(t, path, read(path), read("languages/en.json"))
	}
}
