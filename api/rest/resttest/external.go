package resttest

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// target is a body with a long URL.
const target = `{"long_url":"https://example.com/"}`

// ext returns the path of the link with an external ID.
func ext(id string) string { return "/api/v1/links/ext:" + url.PathEscape(id) }

// linkOf returns the link of an answer.
func linkOf(t *testing.T, a Answer, status int) Object {
	t.Helper()
	link, ok := a.Want(t, status).Body["link"].(Object)
	if !ok || a.Body["success"] != true || a.Header.Get("ETag") == "" {
		t.Fatalf("want a link with its ETag: %v", a)
	}
	return link
}

func (a account) put(t *testing.T, id, body string, header ...string) Answer {
	t.Helper()
	return a.Call(t, http.MethodPut, ext(id), body, header...)
}

// testExternal tests external IDs, and links that are made once.
func testExternal(t *testing.T, s System) {
	for name, test := range map[string]func(t *testing.T, s System){
		"paths":           testExternalIDs,
		"edits":           testExternalEdits,
		"PUT":             testPut,
		"PUT over a link": testPutOver,
		"invalid PUT":     testInvalidPut,
		"PUT at once":     testPutRace,
		"reuse":           testReuse,
		"reuse in calls":  testReuseCalls,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

// testExternalIDs tests external IDs in requests, answers and paths.
func testExternalIDs(t *testing.T, s System) {
	owner, other := s.account(t), s.account(t)
	for i, id := range []string{"order-4711", "a/b", "/", "//x/", "100%", "%2F", "%252F", "a:b", "ext:x", ";a=b;c",
		"?q=1#f", "a+b&c", "..", "a/../b", "\\", `"'<>`, "{hash}", "bulk", "A", "a", strings.Repeat("~", 255)} {
		hash := label()
		owner.Link(t, Object{"long_url": "https://example.com/", "alias": hash, "external_id": id})
		for of, status := range map[string]int{"": 200, "/qr": 200, "/report": 200} {
			testkit.Equal(t, id+of, owner.Get(t, ext(id)+of).Status, status)
		}
		link := linkOf(t, owner.Get(t, ext(id)), http.StatusOK)
		testkit.Equal(t, "link", fmt.Sprint(link["hash"], link["external_id"]), hash+id)
		stats := "/api/v1/stats/" + url.PathEscape("ext:"+id)
		testkit.Equal(t, "hash", owner.Get(t, stats).Want(t, http.StatusOK).Body["hash"], any(hash))
		whole := url.QueryEscape("ext:" + id) // also the colon; no ID has a space
		testkit.Equal(t, "status of the path in another coding", raw(t, owner.Caller, "/api/v1/links/"+whole), 200)
		other.Get(t, ext(id)).WantError(t, http.StatusNotFound)
		owner.Get(t, ext(id)+"?domain_id=0").Want(t, http.StatusOK)
		owner.Get(t, ext(id)+"?domain_id=999").WantError(t, http.StatusNotFound)
		linkOf(t, owner.Call(t, http.MethodPatch, ext(id), `{"title":"T"}`), http.StatusOK)
		if i%2 == 0 {
			owner.Call(t, http.MethodDelete, ext(id), "").Want(t, http.StatusOK)
			owner.Get(t, ext(id)).WantError(t, http.StatusNotFound)
			owner.Shorten(t, Object{"long_url": "https://example.com/", "external_id": id}).
				WantError(t, http.StatusUnprocessableEntity, "external_id")
			link = linkOf(t, owner.Call(t, http.MethodPost, ext(id)+"/restore", ""), http.StatusOK)
			testkit.Equal(t, "restored link", fmt.Sprint(link["hash"], link["external_id"], link["title"]), hash+id+"T")
		}
	}
	for _, invalid := range []any{"a b", "ä", "\t", strings.Repeat("x", 256), 7, []any{}, "A"} {
		owner.Shorten(t, Object{"long_url": "https://example.com/", "external_id": invalid}).
			WantError(t, http.StatusUnprocessableEntity, "external_id")
	}
	for _, none := range []any{nil, ""} {
		made := owner.Link(t, Object{"long_url": "https://example.com/", "external_id": none})
		link := linkOf(t, owner.Get(t, "/api/v1/links/"+made["hash"].(string)), http.StatusOK)
		testkit.Equal(t, "external ID", link["external_id"], nil)
	}
	for _, path := range []string{"ext:", "ext:none", "ext:a%20b", "ext:%C3%A4", "EXT:a",
		"ext:" + strings.Repeat("x", 256)} {
		owner.Get(t, "/api/v1/links/"+path).WantError(t, http.StatusNotFound)
		owner.Call(t, http.MethodPost, "/api/v1/links/"+path+"/restore", "").WantError(t, http.StatusNotFound)
	}
}

func testExternalEdits(t *testing.T, s System) {
	owner := s.account(t)
	path := "/api/v1/links/" + owner.Alias(t, label(), "https://example.com/")["hash"].(string)
	owner.Link(t, Object{"long_url": "https://example.com/", "external_id": "taken"})
	link := linkOf(t, owner.Call(t, http.MethodPatch, path, `{"external_id":"mine"}`), http.StatusOK)
	testkit.Equal(t, "external ID", link["external_id"], any("mine"))
	for _, invalid := range []string{`"taken"`, `""`, `"a b"`, `7`} {
		owner.Call(t, http.MethodPatch, path, `{"external_id":`+invalid+`}`).
			WantError(t, http.StatusUnprocessableEntity, "external_id")
	}
	linkOf(t, owner.Get(t, ext("mine")), http.StatusOK)
	named := `{"links":[{"hash":"` + link["hash"].(string) + `"}],"set":{"external_id":`
	owner.Call(t, http.MethodPost, "/api/v1/links/bulk/edit", named+`"x"}}`).
		WantError(t, http.StatusUnprocessableEntity, "set.external_id")
	owner.Call(t, http.MethodPost, "/api/v1/links/bulk/edit", named+`null}}`).Want(t, http.StatusOK)
	owner.Get(t, ext("mine")).WantError(t, http.StatusNotFound)
	linkOf(t, owner.Call(t, http.MethodPatch, path, `{"external_id":"again"}`), http.StatusOK)
	link = linkOf(t, owner.Call(t, http.MethodPatch, path, `{"external_id":null}`), http.StatusOK)
	testkit.Equal(t, "external ID", link["external_id"], nil)

	results := owner.Call(t, http.MethodPost, "/api/v1/links/bulk", `{"links":[{"long_url":"https://example.com/1",
		"external_id":"b"},{"long_url":"https://example.com/2","external_id":"b"},{"long_url":"https://example.com/3",
		"external_id":"taken"},{"long_url":"https://example.com/4","external_id":"c"}]}`).
		Want(t, http.StatusOK).Body["results"].([]any)
	for i, success := range []bool{true, false, false, true} {
		result := results[i].(Object)
		testkit.Equal(t, "success", result["success"], any(success))
		if errs, _ := result["errors"].(Object); !success && errs[fmt.Sprintf("links.%d.external_id", i)] == nil {
			t.Errorf("result %v", result)
		}
	}
	link = linkOf(t, owner.Get(t, ext("b")), http.StatusOK)
	testkit.Equal(t, "target", link["original_url"], any("https://example.com/1"))
}

// allFields is a body with each field of a link.
const allFields = `{"long_url":"https://example.com/all","title":"T","tags":["b","a"],
	"expires_at":"2099-01-02T03:04:05+00:00","expired_url":"https://example.com/late","forward_query":true,
	"max_clicks":7,"path_mode":"append","password":"open sesame","card":{"title":"C"},
	"rules":[{"name":"phones","if":{"device":["mobile"]},"url":"https://m.example.com/"}],
	"variants":[{"name":"x","url":"https://example.com/x","weight":50},
		{"name":"y","url":"https://example.com/y","weight":50}]}`

// testPut tests what PUT gives a link.
func testPut(t *testing.T, s System) {
	owner, all := s.account(t), allFields
	made := linkOf(t, owner.put(t, "one", all, "If-None-Match", "*"), http.StatusCreated)
	testkit.Equal(t, "external ID", made["external_id"], any("one"))
	testkit.Equal(t, "expiry", made["expires_at"], any("2099-01-02T03:04:05+00:00"))
	first := owner.Get(t, ext("one"))
	testkit.Equal(t, "link", linkOf(t, first, http.StatusOK), made)
	tag := first.Header.Get("ETag")

	t.Run("a repetition changes nothing", func(t *testing.T) {
		again := owner.put(t, "one", all, "If-Match", tag)
		testkit.Equal(t, "link", linkOf(t, again, http.StatusOK), made)
		testkit.Equal(t, "ETag", again.Header.Get("ETag"), tag)
	})
	t.Run("preconditions", func(t *testing.T) {
		for id, header := range map[string][2]string{"one": {"If-None-Match", "*"}, "none": {"If-Match", "*"},
			"unknown": {"If-Match", tag}} {
			a := owner.put(t, id, target, header[0], header[1]).Want(t, http.StatusPreconditionFailed)
			testkit.Equal(t, "error", a.Body["error"], any("changed"))
		}
		owner.put(t, "one", target, "If-Match", `"x"`).Want(t, http.StatusPreconditionFailed)
		owner.put(t, "one", target, "If-Match", `x`).Want(t, http.StatusBadRequest)
		owner.Get(t, ext("none")).WantError(t, http.StatusNotFound)
	})
	t.Run("fields that are not given become defaults", func(t *testing.T) {
		owner.Call(t, http.MethodPatch, ext("one"), `{"is_active":false}`).Want(t, http.StatusOK)
		link := linkOf(t, owner.put(t, "one", target), http.StatusOK)
		plain := linkOf(t, owner.put(t, "plain", target), http.StatusCreated)
		for field, want := range plain {
			switch field {
			case "hash", "short_url", "external_id", "created_at", "updated_at":
			default:
				testkit.Equal(t, field, link[field], want)
			}
		}
		testkit.Equal(t, "hash", link["hash"], made["hash"])
	})
}

// testPutOver tests what PUT does to links in other states.
func testPutOver(t *testing.T, s System) {
	owner, other := s.account(t), s.account(t)
	id, _ := s.domain(t, owner)
	linkOf(t, owner.put(t, "one", target), http.StatusCreated)
	t.Run("a link stays on its domain", func(t *testing.T) {
		on := fmt.Sprintf(`{"long_url":"https://example.com/","domain_id":%s}`, id)
		owner.put(t, "one", on).WantError(t, http.StatusUnprocessableEntity, "domain_id")
		linkOf(t, owner.put(t, "two", on), http.StatusCreated)
		linkOf(t, owner.put(t, "two", on), http.StatusOK)
		owner.put(t, "two", target).WantError(t, http.StatusUnprocessableEntity, "domain_id")
		foreign := fmt.Sprintf(`{"long_url":"https://example.com/","domain_id":%s}`, id)
		other.put(t, "two", foreign).WantError(t, http.StatusUnprocessableEntity, "domain_id")
	})
	t.Run("another alias renames", func(t *testing.T) {
		alias, taken := label(), label()
		other.Alias(t, taken, "https://example.com/")
		for _, field := range []string{"alias", "custom_alias"} {
			alias += "-x"
			was := linkOf(t, owner.Get(t, ext("one")), http.StatusOK)
			renamed := fmt.Sprintf(`{"long_url":"https://example.com/","%s":%q}`, field, alias)
			link := linkOf(t, owner.put(t, "one", renamed), http.StatusOK)
			testkit.Equal(t, "hash", link["hash"], any(alias))
			testkit.Equal(t, "former hashes", link["former_hashes"].([]any),
				append(was["former_hashes"].([]any), was["hash"]))
			tag := owner.Get(t, ext("one")).Header.Get("ETag")
			testkit.Equal(t, "ETag", owner.put(t, "one", renamed).Header.Get("ETag"), tag)
			for _, id := range []string{"one", "new"} {
				owner.put(t, id, fmt.Sprintf(`{"long_url":"https://example.com/","%s":%q}`, field, taken)).
					WantError(t, http.StatusUnprocessableEntity, field)
			}
		}
	})
	t.Run("a link in the trash comes back", func(t *testing.T) {
		for i, alias := range []string{"", label()} {
			was := linkOf(t, owner.put(t, "gone", target), []int{http.StatusCreated, http.StatusOK}[i])
			owner.Call(t, http.MethodDelete, ext("gone"), "").Want(t, http.StatusOK)
			owner.put(t, "gone", target, "If-Match", "*").Want(t, http.StatusPreconditionFailed)
			taken := label()
			owner.Alias(t, taken, "https://example.com/")
			owner.put(t, "gone", fmt.Sprintf(`{"long_url":"https://example.com/back","alias":%q}`, taken)).
				WantError(t, http.StatusUnprocessableEntity, "alias")
			owner.Call(t, http.MethodGet, ext("gone"), "").Want(t, http.StatusNotFound) // it is in the trash still
			body := fmt.Sprintf(`{"long_url":"https://example.com/back","title":"B","alias":%q}`, alias)
			link := linkOf(t, owner.put(t, "gone", body, "If-None-Match", "*"), http.StatusOK)
			if alias == "" {
				alias = was["hash"].(string)
			}
			testkit.Equal(t, "link", fmt.Sprint(link["hash"], link["title"], link["original_url"], link["is_active"],
				link["created_at"]), fmt.Sprint(alias, "B", "https://example.com/back", true, was["created_at"]))
		}
	})
}

func testInvalidPut(t *testing.T, s System) {
	owner := s.account(t)
	made := linkOf(t, owner.put(t, "one", target), http.StatusCreated)
	for _, id := range []string{"one", "never"} {
		owner.put(t, id, `{"external_id":"other","title":7}`).
			WantError(t, http.StatusUnprocessableEntity, "external_id", "long_url", "title")
		owner.put(t, id, `{"long_url":"https://`+UnsafeHost+`/"}`).Want(t, http.StatusUnprocessableEntity)
		owner.put(t, id, ``).WantError(t, http.StatusUnprocessableEntity, "long_url")
		owner.put(t, id, `[]`).WantError(t, http.StatusBadRequest)
	}
	testkit.Equal(t, "link", linkOf(t, owner.Get(t, ext("one")), http.StatusOK), made)
	owner.Get(t, ext("never")).WantError(t, http.StatusNotFound)
	owner.put(t, "a b", target).WantError(t, http.StatusUnprocessableEntity, "external_id")
	owner.Call(t, http.MethodPut, "/api/v1/links/"+made["hash"].(string), target).
		WantError(t, http.StatusUnprocessableEntity, "hash")
	linkOf(t, owner.put(t, "same", `{"long_url":"https://example.com/","external_id":"same"}`), http.StatusCreated)
	testkit.Equal(t, "external ID of a path in another spelling",
		linkOf(t, owner.Call(t, http.MethodPut, "/api/v1/links/ext%3Asame/", target), http.StatusOK)["external_id"],
		any("same"))
}

// testPutRace lets 64 clients make one link, by PUT alone and beside its deletion.
func testPutRace(t *testing.T, s System) {
	owner := s.account(t)
	for _, id := range []string{"same", "different"} {
		created := 0
		for _, a := range crowd(t, func(i int) (Answer, error) {
			body := target
			if id == "different" {
				body = fmt.Sprintf(`{"long_url":"https://example.com/%d","rules":[{"name":"r%d","if":{"device":["mobile"]},
					"url":"https://example.com/"}]}`, i, i)
			}
			return owner.Try(t, http.MethodPut, ext(id), body)
		}) {
			if a.Status == http.StatusCreated {
				created++
			} else if err := a.IsStatus(http.StatusOK); err != nil {
				t.Fatal(err)
			}
		}
		testkit.Equal(t, "links created", created, 1)
	}
	crowd(t, func(i int) (Answer, error) {
		if i%4 == 0 {
			return owner.Try(t, http.MethodDelete, ext("same"), "")
		}
		a, err := owner.Try(t, http.MethodPut, ext("same"), target)
		if err == nil {
			err = a.IsStatus(http.StatusOK)
		}
		return a, err
	})
	_, meta := owner.Page(t, "")
	trash := owner.Get(t, "/api/v1/links?deleted=true").Want(t, http.StatusOK).Body["data"].([]any)
	testkit.Equal(t, "links", Number(t, meta, "total")+int64(len(trash)), 2)
}

// crowd makes 64 calls at once, and again what was refused because the service was busy, as its answer asks.
func crowd(t *testing.T, call func(i int) (Answer, error)) []Answer {
	t.Helper()
	answers, errs := make([]Answer, 64), make([]error, 64)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			for range 5 {
				if answers[i], errs[i] = call(i); errs[i] != nil || answers[i].Status != http.StatusServiceUnavailable {
					return
				}
				time.Sleep(time.Second)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		testkit.Must(t, err)
	}
	return answers
}

// The statuses of new and of reused links.
const made, reused = http.StatusCreated, http.StatusOK

// shorten returns the hash of a link.
func (a account) shorten(t *testing.T, status int, fields Object, header ...string) any {
	t.Helper()
	answer := a.Shorten(t, fields, header...).Want(t, status)
	createdLink.Check(t, answer.Body)
	return answer.Body["hash"]
}

// to returns the fields of a link that may be reused. more has names and values in turn.
func to(path string, more ...any) Object {
	fields := Object{"long_url": "https://example.com/" + path, "reuse": true}
	for i := 0; i+1 < len(more); i += 2 {
		fields[more[i].(string)] = more[i+1]
	}
	return fields
}

// testReuse tests which links are reused.
func testReuse(t *testing.T, s System) {
	owner, other := s.account(t), s.account(t)
	domain, _ := s.domain(t, owner)
	shorten := owner.shorten
	first := shorten(t, made, to("a"))
	testkit.Equal(t, "hash", shorten(t, reused, to("a")), first)
	second := shorten(t, made, Object{"long_url": "https://example.com/a", "title": "T"})
	testkit.Equal(t, "the newest", shorten(t, reused, to("a")), second)
	for _, other := range []Object{to("A"), to("a/"), to("a?"), to("a", "domain_id", domain), to("a", "title", "U"),
		to("a", "tags", []string{"x"}), to("a", "forward_query", true), to("a", "expires_at", "2099-01-01T00:00:00Z"),
		to("a", "expired_url", "https://example.com/"), to("a", "max_clicks", 5), to("a", "external_id", "id"),
		to("a", "alias", label()), to("a", "custom_alias", label()), to("a", "card", Object{"title": "C"}),
		to("a", "path_mode", "append"), to("a", "rules", []Object{{"name": "r", "url": "https://example.com/",
			"if": Object{"device": []string{"mobile"}}}})} {
		hash := shorten(t, made, other)
		testkit.Equal(t, fmt.Sprint(other), shorten(t, reused, other), hash)
		if other["domain_id"] == nil && other["long_url"] == to("a")["long_url"] {
			testkit.Equal(t, "without the field", shorten(t, reused, to("a")), hash)
		}
	}
	some := to("a", "title", "T", "tags", nil, "forward_query", false)
	testkit.Equal(t, "hash of the link with two fields", shorten(t, reused, some), second)

	t.Run("a link that does not redirect is not reused", func(t *testing.T) {
		for i, stop := range []func(hash string){
			func(hash string) { owner.Call(t, http.MethodDelete, "/api/v1/links/"+hash, "").Want(t, http.StatusOK) },
			func(hash string) {
				owner.Call(t, http.MethodPatch, "/api/v1/links/"+hash, `{"is_active":false}`).Want(t, http.StatusOK)
			},
			func(hash string) {
				owner.Call(t, http.MethodPatch, "/api/v1/links/"+hash, `{"password":"sesame"}`).Want(t, http.StatusOK)
			},
			func(hash string) {
				owner.Call(t, http.MethodPatch, "/api/v1/links/"+hash, `{"long_url":"https://example.com/"}`).
					Want(t, http.StatusOK)
			},
		} {
			path := fmt.Sprintf("stopped-%d", i)
			hash := shorten(t, made, to(path)).(string)
			stop(hash)
			shorten(t, made, to(path))
		}
	})
	t.Run("it belongs to the caller", func(t *testing.T) {
		other.Shorten(t, to("a")).Want(t, http.StatusCreated)
	})
	t.Run("invalid ones", func(t *testing.T) {
		owner.Shorten(t, to("a", "password", "open sesame")).WantError(t, http.StatusUnprocessableEntity, "password")
		owner.Shorten(t, Object{"long_url": "https://example.com/a", "reuse": "yes"}).
			WantError(t, http.StatusUnprocessableEntity, "reuse")
		shorten(t, made, Object{"long_url": "https://example.com/a", "reuse": false})
	})
}

// testReuseCalls tests calls that reuse links beside others.
func testReuseCalls(t *testing.T, s System) {
	owner := s.account(t)
	shorten := owner.shorten
	t.Run("an Idempotency-Key repeats the status, too", func(t *testing.T) {
		for i, status := range []int{made, reused} {
			key := []string{"Idempotency-Key", label()}
			hash := shorten(t, status, to("key"), key...)
			again := owner.Shorten(t, to("key"), key...).Want(t, status)
			testkit.Equal(t, "replayed", again.Header.Get("Idempotency-Replayed"), "true")
			testkit.Equal(t, fmt.Sprint("hash of call ", i), again.Body["hash"], hash)
		}
	})
	t.Run("in bulk", func(t *testing.T) {
		results := owner.Call(t, http.MethodPost, "/api/v1/links/bulk", `{"links":[
			{"long_url":"https://example.com/bulk","reuse":true},{"long_url":"https://example.com/key","reuse":true},
			{"long_url":"https://example.com/bulk","reuse":true},{"long_url":"https://example.com/bulk"}]}`).
			Want(t, http.StatusOK).Body["results"].([]any)
		hash := func(i int) any { return results[i].(Object)["hash"] }
		testkit.Equal(t, "hash of a link before the call", hash(1), shorten(t, reused, to("key")))
		if hash(2) != hash(0) || hash(3) == hash(0) {
			t.Errorf("results %v", results)
		}
	})
	t.Run("64 clients make one link", func(t *testing.T) {
		created, hashes := 0, map[any]bool{}
		for i, a := range crowd(t, func(i int) (Answer, error) {
			body, header := `{"long_url":"https://example.com/race","reuse":true}`, []string(nil)
			if i%4 == 3 {
				header = []string{"Idempotency-Key", label()}
			}
			return owner.Try(t, http.MethodPost, "/api/v1/shorten", body, header...)
		}) {
			if a.Status == made {
				created++
			} else if err := a.IsStatus(reused); err != nil {
				t.Fatalf("call %d: %v", i, err)
			}
			hashes[a.Body["hash"]] = true
		}
		testkit.Equal(t, "links", fmt.Sprint(created, len(hashes)), "1 1")
	})
}
