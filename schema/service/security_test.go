package service_test

import (
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/schema/service"
	"linkstream/schema/testkit"
)

func TestContacts(t *testing.T) {
	for list, want := range map[string]string{
		"": "", "security@example.org": "mailto:security@example.org",
		"https://example.org/report, mailto:a@example.org,tel:+1-201-555-0123": "https://example.org/report," +
			"mailto:a@example.org,tel:+1-201-555-0123",
		"http://example.org/": "", "example.org": "", "mailto:": "", "https://": "", "javascript:x": "", "a@b\n.c": "",
		"security@example.org,nothing": "",
	} {
		var c service.Contacts
		if err := c.Set(list); c.String() != want || (err != nil) != (want == "" && list != "") {
			t.Errorf("%q is %q, %v; want %q", list, c.String(), err, want)
		}
	}
}

func TestSecurityText(t *testing.T) {
	answer := func(c service.Contacts, method, path string) (text string, answered bool) {
		var http fasthttp.RequestCtx
		http.Request.Header.SetMethod(method)
		http.Request.SetRequestURI(path)
		answered = c.Answer(&http)
		return string(http.Response.Body()), answered
	}
	contacts := service.Contacts{"mailto:a@example.org", "https://example.org/report"}
	for _, method := range []string{"GET", "HEAD"} {
		text, answered := answer(contacts, method, "/.well-known/security.txt?x")
		contact, expires, _ := strings.Cut(text, "Expires: ")
		testkit.Equal(t, "contacts", contact, "Contact: mailto:a@example.org\nContact: https://example.org/report\n")
		until, err := time.Parse(time.RFC3339+"\n", expires)
		testkit.Must(t, err)
		if left := time.Until(until); !answered || left < 88*24*time.Hour || left > 365*24*time.Hour {
			t.Errorf("expires %s", expires)
		}
	}
	for _, c := range []struct {
		contacts     service.Contacts
		method, path string
	}{{nil, "GET", service.SecurityPath}, {contacts, "POST", service.SecurityPath}, {contacts, "GET", "/security.txt"}} {
		if text, answered := answer(c.contacts, c.method, c.path); answered || text != "" {
			t.Errorf("%s %s: %s", c.method, c.path, text)
		}
	}
}
