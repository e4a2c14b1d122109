package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/api/ratelimit"
	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

const pathBulk = "/api/v1/links/bulk"

func TestBulk(t *testing.T) {
	s := start(t)
	owner := s.caller(t, "a@example.org")
	domain := owner.addDomain(t, "go.example.org", true)
	owner.link(t, map[string]any{"long_url": anyURL, "custom_alias": "taken"})
	t.Run("POST links/bulk has an outcome for each link, in order", func(t *testing.T) {
		a := owner.request(t, http.MethodPost, pathBulk, fmt.Sprintf(`{"links":[
			{"long_url":"https://example.com/1","title":"One","tags":["a"]}, {"long_url":"x","tags":1},
			{"long_url":"http://bad.example"},
			{"long_url":"x","custom_alias":"twice"}, {"long_url":"https://example.com/2","custom_alias":"twice"},
			{"long_url":"https://example.com/3","custom_alias":"twice"},
			{"long_url":"https://example.com/4","custom_alias":"twice","domain_id":%d},
			{"long_url":"https://example.com/","custom_alias":"taken"}, 7, null]}`, domain))
		a.wantKeys(t, http.StatusOK, "success", "created", "failed", "results")
		wantLink(t, a.body, map[string]any{"success": true, "created": json.Number("3"), "failed": json.Number("7")})
		results := a.body["results"].([]any)
		for i, want := range []any{"https://example.com/1", []string{"links.1.long_url", "links.1.tags"}, "unsafe_url",
			[]string{"links.3.long_url"}, "https://example.com/2", []string{"links.5.custom_alias"}, "https://example.com/4",
			[]string{"links.7.custom_alias"}, []string{"links.8"}, []string{"links.9"}} {
			result := results[i].(map[string]any)
			switch want := want.(type) {
			case []string:
				errors, _ := result["errors"].(map[string]any)
				for _, field := range want {
					if errors[field] == nil || len(errors) != len(want) || len(result) != 3 || result["success"] != false {
						t.Errorf("result %d: %v, want errors of %q", i, result, want)
					}
				}
			case string:
				if want == "unsafe_url" {
					if result["error"] != want || len(result) != 3 || result["success"] != false {
						t.Errorf("result %d: %v", i, result)
					}
				} else if result["original_url"] != want || len(result) != 5 || result["success"] != true {
					t.Errorf("result %d: %v, want %q", i, result, want)
				}
			}
		}
		wantLink(t, owner.get(t, "/api/v1/links/"+results[0].(map[string]any)["hash"].(string)).fullLink(t),
			map[string]any{"title": "One", "tags": []any{"a"}})
		wantLink(t, owner.get(t, "/api/v1/links/twice").fullLink(t), map[string]any{"original_url": "https://example.com/2"})
	})
	t.Run("POST links/bulk takes 1 to 1000 links", func(t *testing.T) {
		for _, body := range []string{`{}`, `{"links":[]}`, `{"links":null}`, `{"links":{}}`,
			`{"links":[` + strings.Repeat("{},", 1000) + `{}]}`} {
			owner.request(t, http.MethodPost, pathBulk, body).wantInvalid(t, "links")
		}
	})
	t.Run("POST links/bulk counts as a request for every 100 links begun", func(t *testing.T) {
		left := func(a answer) (n int) {
			_, err := fmt.Sscan(a.header.Get("X-RateLimit-Remaining"), &n)
			testkit.Must(t, err)
			return n
		}
		counted := s.caller(t, "counted@example.org")
		for links, want := range map[int]int{1: 1, 100: 1, 101: 2, 1000: 10} {
			for { // both requests in one window
				before := left(counted.get(t, "/api/v1/tags"))
				a := counted.request(t, http.MethodPost, pathBulk,
					`{"links":[`+strings.TrimSuffix(strings.Repeat(`{"long_url":"https://example.com/"},`, links), ",")+`]}`)
				wantLink(t, a.body, map[string]any{"created": json.Number(fmt.Sprint(links))})
				if after := left(a); after < before {
					testkit.Equal(t, fmt.Sprintf("requests for %d links", links), before-after, want)
					break
				}
			}
		}
	})
	t.Run("POST links/bulk takes all or nothing of the rest of the rate limit", func(t *testing.T) {
		bulk := func(c caller, links int) answer {
			return c.request(t, http.MethodPost, pathBulk, `{"links":[`+strings.TrimSuffix(strings.Repeat("7,", links), ",")+
				`]}`)
		}
		for turn := 0; ; turn++ {
			window := time.Now().Truncate(ratelimit.Window)
			limited := s.caller(t, fmt.Sprintf("limited%d@example.org", turn))
			left, err, tokenID := ratelimit.RequestLimit, error(nil), limited.addToken(t)
			for left > 24 { // another process takes most of the limit
				_, left, err = s.links.LeaseRequests(t.Context(), tokenID, window, ratelimit.RequestLimit)
				testkit.Must(t, err)
			}
			for range left - 20 {
				limited.get(t, "/api/v1/tags")
			}
			bulk(limited, 901)
			bulk(limited, 301)
			for range 3 {
				refused := bulk(limited, 601)
				if time.Now().Truncate(ratelimit.Window).Equal(window) {
					refused.wantKeys(t, http.StatusTooManyRequests, "message")
					testkit.Equal(t, "remaining", refused.header.Get("X-RateLimit-Remaining"), "6")
				}
			}
			taken, none := bulk(limited, 600), limited.get(t, "/api/v1/tags")
			if time.Now().Truncate(ratelimit.Window).Equal(window) { // all in one window
				taken.want(t, http.StatusOK)
				testkit.Equal(t, "remaining", taken.header.Get("X-RateLimit-Remaining"), "0")
				none.wantKeys(t, http.StatusTooManyRequests, "message")
				break
			}
		}
	})
	t.Run("POST links/bulk takes 4 MiB, and other paths do not", func(t *testing.T) {
		padding := strings.Repeat(" ", 4<<20-60)
		owner.request(t, http.MethodPost, pathBulk, `{"links":[{"long_url":"https://example.com/"}]`+padding+`}`).want(t,
			http.StatusOK)
		a, err := owner.try(t.Context(), http.MethodPost, pathBulk, padding+padding)
		if err == nil {
			a.wantKeys(t, http.StatusRequestEntityTooLarge, "message")
		}
	})
}

func TestBulkBodiesAreBounded(t *testing.T) {
	s := start(t)
	owner, other := s.caller(t, "a@example.org"), s.caller(t, "b@example.org")
	large := `{"links":[{"long_url":"https://example.com/"}]` + strings.Repeat(" ", 320<<10) + `}`
	owner.request(t, http.MethodPost, pathBulk, large).want(t, http.StatusOK)
	const most = 8 // bodies: an account has room for two, and the kernel may keep more that the server has not read yet
	var unfinished []net.Conn
	testkit.Succeeds(t, func() error { // after a few bodies without an end, at most the bound of an account
		if len(unfinished) == most {
			unfinished[0].Close()
			unfinished = unfinished[1:]
		}
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
		testkit.Must(t, err)
		unfinished = append(unfinished, conn)
		_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nContent-Type: "+
			"application/json\r\n"+
			// fails when there is no room
			"Content-Length: %d\r\n\r\n%s", pathBulk, owner.token, 4<<20, strings.Repeat(" ", 4<<20-1))
		a := owner.request(t, http.MethodPost, pathBulk, large)
		if a.status == http.StatusTooManyRequests && a.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		return testkit.Mismatch("one too many", a.status, http.StatusTooManyRequests)
	})
	owner.link(t, map[string]any{"long_url": anyURL})
	other.request(t, http.MethodPost, pathBulk, large).want(t, http.StatusOK)
	for _, conn := range unfinished {
		conn.Close()
	}
	testkit.Succeeds(t, func() error {
		return testkit.Mismatch("there is room again", owner.request(t, http.MethodPost, pathBulk, large).status,
			http.StatusOK)
	})
}

func TestBulkOutage(t *testing.T) {
	var down atomic.Bool
	s := startFaulty(t, storetest.FaultOf(func(context.Context) error {
		if down.Load() {
			return schema.Errorf(schema.CodeUnavailable, "down")
		}
		return nil
	}, "CreateLinks"))
	owner := s.caller(t, "a@example.org")
	down.Store(true)
	a := owner.request(t, http.MethodPost, pathBulk, `{"links":[{"long_url":"https://example.com/"},{"long_url":"x"}]}`)
	a.wantKeys(t, http.StatusServiceUnavailable, "message")
}
