package rest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

const taggedPath = "/api/v1/links/tagged"

// tag returns the tag of an answer with a link, or without a body.
func (a answer) tag(t *testing.T, status int) string {
	t.Helper()
	testkit.Equal(t, "status", a.status, status)
	tag := a.header.Get("ETag")
	if len(tag) < 3 || tag[0] != '"' || tag[len(tag)-1] != '"' {
		t.Fatalf("ETag %q, body %s", tag, a.raw)
	}
	return tag
}

func (a answer) wantChanged(t *testing.T) {
	t.Helper()
	a.wantKeys(t, http.StatusPreconditionFailed, "error", "message")
	testkit.Equal[any](t, "error", a.body["error"], "changed")
}

// TestTag changes a link in every way.
func TestTag(t *testing.T) {
	s := start(t)
	owner := s.caller(t, "a@example.org")
	domain := owner.addDomain(t, "go.example.org", true)
	create := func() {
		owner.link(t, map[string]any{"long_url": anyURL, "custom_alias": "tagged", "domain_id": domain})
	}
	link := func() schema.Link {
		link, err := schema.FindLink(t.Context(), s.links, domain, "tagged")
		testkit.Must(t, err)
		return link
	}
	post := func(path, body string) {
		owner.request(t, http.MethodPost, path, body).want(t, http.StatusOK)
	}
	create()
	last := owner.get(t, taggedPath).tag(t, http.StatusOK)
	seen := map[string]string{last: "creation"}
	for _, step := range []struct {
		name string
		same bool
		do   func()
	}{
		{"nothing", true, func() {}},
		{"a click", true, func() { s.click(t, link().ID, 1) }},
		{"a refused edit", true, func() { owner.patch(t, taggedPath, `{"title":7}`) }},
		{"an edit", false, func() {
			answered := owner.patch(t, taggedPath, `{"title":"A"}`).tag(t, http.StatusOK)
			testkit.Equal(t, "tag of the edit's answer", answered, owner.get(t, taggedPath).tag(t, http.StatusOK))
		}},
		{"an edit to what the link has", false, func() { owner.patch(t, taggedPath, `{"title":"A"}`) }},
		{"a password", false, func() { owner.patch(t, taggedPath, `{"password":"open sesame"}`) }},
		{"another password", false, func() { owner.patch(t, taggedPath, `{"password":"close sesame"}`) }},
		{"an edit of many links", false, func() {
			post("/api/v1/links/bulk/edit", `{"links":[{"hash":"tagged"}],"add_tags":["a"]}`)
		}},
		{"another name of a tag", false, func() {
			_, err := s.links.RenameTag(t.Context(), owner.account.ID, "a", "b", time.Now())
			testkit.Must(t, err)
		}},
		{"a take-down", false, func() { testkit.Must(t, s.links.SetTakenDown(t.Context(), domain, "tagged", true)) }},
		{"a lost domain", true, func() { testkit.Must(t, s.links.ReleaseDomain(t.Context(), domain, time.Now())) }},
		{"its end on a lost domain", false, func() {
			testkit.Must(t, s.links.SetTakenDown(t.Context(), domain, "tagged", false))
		}},
		{"a path mode of the domain", false, func() {
			testkit.Must(t, s.links.SetSite(t.Context(), domain, schema.Site{PathMode: schema.PathIgnore}, schema.AppLinks{}))
		}},
		{"deletion and restoring", false, func() {
			owner.request(t, http.MethodDelete, taggedPath, "")
			answered := owner.request(t, http.MethodPost, taggedPath+"/restore", "").tag(t, http.StatusOK)
			testkit.Equal(t, "tag of the answer", answered, owner.get(t, taggedPath).tag(t, http.StatusOK))
		}},
		{"a new link with the same hash", false, func() {
			owner.request(t, http.MethodDelete, taggedPath, "")
			testkit.Must(t, s.links.VerifyDomain(t.Context(), domain, time.Now()))
			create()
		}},
		{"a link of the same hash on the default domain", false, func() {
			owner.link(t, map[string]any{"long_url": anyURL, "custom_alias": "tagged"})
		}},
	} {
		step.do()
		tag := owner.get(t, taggedPath).tag(t, http.StatusOK)
		if step.same != (tag == last) {
			t.Errorf("after %s the tag is %s, before %s", step.name, tag, last)
		}
		if before, again := seen[tag]; again && !step.same {
			t.Errorf("the tag after %s is that after %s", step.name, before)
		}
		seen[tag], last = step.name, tag
	}
}

// TestPreconditions sends each field with each method.
func TestPreconditions(t *testing.T) {
	s := start(t)
	owner, other := s.caller(t, "a@example.org"), s.caller(t, "b@example.org")
	owner.link(t, map[string]any{"long_url": anyURL, "custom_alias": "tagged"})
	const ok, notModified, malformed, changed = http.StatusOK, http.StatusNotModified, http.StatusBadRequest,
		http.StatusPreconditionFailed
	for _, c := range []struct {
		match, none         string // TAG is the link's tag; a line break separates lines of the field
		get, patch, deleted int
	}{
		{"TAG", "", ok, ok, ok},
		{"*", "", ok, ok, ok},
		{" \t* ", "", ok, ok, ok},
		{`"x", TAG`, "", ok, ok, ok},
		{`W/"x" ,,TAG,`, "", ok, ok, ok},
		{"\"x\"\nTAG", "", ok, ok, ok},
		{`"x"`, "", changed, changed, changed},
		{`""`, "", changed, changed, changed},
		{`"ü,*"`, "", changed, changed, changed},
		{"W/TAG", "", changed, changed, changed},
		{"W/TAG, \"x\"\n\"y\"", "", changed, changed, changed},
		{"BARE", "", malformed, malformed, malformed},
		{"'BARE'", "", malformed, malformed, malformed},
		{`"BARE`, "", malformed, malformed, malformed},
		{"w/TAG", "", malformed, malformed, malformed},
		{"W/ TAG", "", malformed, malformed, malformed},
		{"TAG TAG", "", malformed, malformed, malformed},
		{`TAGx`, "", malformed, malformed, malformed},
		{`TAG, "a b"`, "", malformed, malformed, malformed},
		{"*, TAG", "", malformed, malformed, malformed},
		{"TAG\n*", "", malformed, malformed, malformed},
		{",", "", malformed, malformed, malformed},
		{" ", "", malformed, malformed, malformed},
		{"", "TAG", notModified, changed, changed},
		{"", "W/TAG", notModified, changed, changed},
		{"", `"x", W/TAG`, notModified, changed, changed},
		{"", "*", notModified, changed, changed},
		{"", `"x", W/"y"`, ok, ok, ok},
		{"", "BARE", malformed, malformed, malformed},
		{"TAG", "TAG", notModified, changed, changed},
		{`"x"`, "TAG", changed, changed, changed},
		{"TAG", `"x"`, ok, ok, ok},
	} {
		for method, want := range map[string]int{http.MethodGet: c.get, http.MethodHead: c.get, http.MethodPatch: c.patch,
			http.MethodDelete: c.deleted} {
			t.Run(fmt.Sprintf("%s with If-Match %q and If-None-Match %q gives %d", method, c.match, c.none, want),
				func(t *testing.T) {
					tag := owner.get(t, taggedPath).tag(t, ok)
					fill := strings.NewReplacer("TAG", tag, "BARE", strings.Trim(tag, `"`))
					body := map[string]string{http.MethodPatch: `{"title":"x"}`}[method]
					if want >= 400 && method == http.MethodPatch {
						body = `{"title":7}` // is not looked at
					}
					req, err := http.NewRequestWithContext(t.Context(), method, s.base+taggedPath, strings.NewReader(body))
					testkit.Must(t, err)
					req.Header = http.Header{"Authorization": {"Bearer " + owner.token}, "Content-Type": {"application/json"}}
					for field, value := range map[string]string{"If-Match": c.match, "If-None-Match": c.none} {
						if value != "" {
							req.Header[field] = strings.Split(fill.Replace(value), "\n")
						}
					}
					res, err := s.client.Do(req)
					testkit.Must(t, err)
					testkit.Must(t, res.Body.Close())
					testkit.Equal(t, "status", res.StatusCode, want)
					if got := res.Header.Get("ETag"); (want == ok || want == notModified) && method == http.MethodGet && got != tag {
						t.Errorf("ETag %s, want %s", got, tag)
					}
					if method == http.MethodDelete && want == ok {
						owner.request(t, http.MethodPost, taggedPath+"/restore", "").want(t, ok)
					} else if method != http.MethodPatch || want != ok {
						testkit.Equal(t, "tag afterwards", owner.get(t, taggedPath).tag(t, ok), tag)
					}
				})
		}
	}
	t.Run("a link of someone else, or none, is 404 whatever the fields say", func(t *testing.T) {
		for _, tag := range []string{"*", `"x"`, "x", owner.get(t, taggedPath).tag(t, ok)} {
			for _, field := range []string{"If-Match", "If-None-Match"} {
				for _, method := range []string{http.MethodGet, http.MethodPatch, http.MethodDelete} {
					other.request(t, method, taggedPath, `{"title":"x"}`, field, tag).wantKeys(t, http.StatusNotFound, "error",
						"message")
				}
			}
		}
	})
	t.Run("the answer 412 has error = changed", func(t *testing.T) {
		owner.request(t, http.MethodPatch, taggedPath, `{"title":"x"}`, "If-Match", `"x"`).wantChanged(t)
	})
}

// TestTagRace sends changes with one tag at the same time.
func TestTagRace(t *testing.T) {
	s := start(t)
	owner := s.caller(t, "a@example.org")
	owner.link(t, map[string]any{"long_url": anyURL, "custom_alias": "tagged"})
	for _, c := range []struct {
		name   string
		method func(i int) string
		body   string
	}{
		{"titles", func(int) string { return http.MethodPatch }, `{"title":"by %d"}`},
		{"behaviours", func(int) string { return http.MethodPatch },
			`{"card":{"title":"by %d","description":"","image":null}}`},
		{"titles and deletions", func(i int) string { return []string{http.MethodPatch, http.MethodDelete}[i%2] },
			`{"title":"by %d"}`},
	} {
		t.Run("of 64 changes with one tag one succeeds: "+c.name, func(t *testing.T) {
			tag := owner.get(t, taggedPath).tag(t, http.StatusOK)
			var changed atomic.Int64
			var calls sync.WaitGroup
			for i := range 64 {
				calls.Go(func() {
					a, err := owner.try(t.Context(), c.method(i), taggedPath, fmt.Sprintf(c.body, i), "If-Match", tag)
					switch {
					case err == nil && a.status == http.StatusOK:
						changed.Add(1)
					case err != nil || a.status != http.StatusPreconditionFailed && a.status != http.StatusNotFound:
						t.Errorf("status %d, %v: %s", a.status, err, a.raw)
					}
				})
			}
			calls.Wait()
			testkit.Equal(t, "changes", changed.Load(), 1)
		})
	}
}

// TestTagChangesMeanwhile changes the link between the look at its tag and the change.
func TestTagChangesMeanwhile(t *testing.T) {
	var s *testService
	s = startFaulty(t, storetest.FaultOf(func(ctx context.Context) error {
		link, err := schema.FindLink(ctx, s.links, 0, "tagged")
		return errors.Join(err, s.links.UpdateLink(ctx, &link, schema.LinkEdit{Title: new("first")}, time.Now()))
	}, "UpdateLink", "DeleteUnchanged"))
	owner := s.caller(t, "a@example.org")
	owner.link(t, map[string]any{"long_url": anyURL, "custom_alias": "tagged"})
	for method, body := range map[string]string{http.MethodPatch: `{"title":"second"}`, http.MethodDelete: ""} {
		tag := owner.get(t, taggedPath).tag(t, http.StatusOK)
		owner.request(t, method, taggedPath, body, "If-Match", tag).wantChanged(t)
		wantLink(t, owner.get(t, taggedPath).fullLink(t), map[string]any{"title": "first"})
	}
	owner.patch(t, taggedPath, `{"title":"second"}`).fullLink(t)
}
