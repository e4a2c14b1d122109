package rest_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

const (
	pathShorten = "/api/v1/shorten"
	headerKey   = "Idempotency-Key"
)

// keyed sends a POST request with a key.
func (c caller) keyed(t *testing.T, path, key, body string) answer {
	t.Helper()
	return c.request(t, http.MethodPost, path, body, headerKey, key)
}

// wantReplay requires that a is the answer first, sent again.
func (a answer) wantReplay(t *testing.T, first answer) {
	t.Helper()
	if a.status != first.status || a.raw != first.raw || first.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("%d %s, want %d %s", a.status, a.raw, first.status, first.raw)
	}
	testkit.Equal(t, "Idempotency-Replayed", a.header.Get("Idempotency-Replayed"), "true")
}

// wantLinks requires the number of the account's links.
func (c caller) wantLinks(t *testing.T, want int64) {
	t.Helper()
	_, total, err := c.links.Links(t.Context(), c.account.ID, schema.LinkFilter{}, 1)
	testkit.Must(t, err)
	testkit.Equal(t, "links", total, want)
}

func TestIdempotencyKey(t *testing.T) {
	s := start(t)
	const body = `{"long_url":"https://example.com/<a>&b"}`
	t.Run("creates a link once", func(t *testing.T) {
		owner, other := s.caller(t, "a@example.org"), s.caller(t, "b@example.org")
		first := owner.keyed(t, pathShorten, "key", body)
		first.wantKeys(t, http.StatusCreated, "success", "short_url", "original_url", "hash", "created_at")
		hash := first.body["hash"].(string)
		owner.keyed(t, pathShorten, "key", body).wantReplay(t, first)
		owner.request(t, http.MethodDelete, "/api/v1/links/"+hash, "").want(t, http.StatusOK)
		owner.keyed(t, pathShorten, "key", body).wantReplay(t, first)
		owner.addToken(t)
		owner.keyed(t, pathShorten, "key", body).wantReplay(t, first)
		owner.wantLinks(t, 0)
		for path, changed := range map[string]string{pathShorten: body + " ", pathBulk: body} {
			owner.keyed(t, path, "key", changed).wantInvalid(t, headerKey)
		}
		owner.keyed(t, pathShorten, "Key", body).want(t, http.StatusCreated)
		other.keyed(t, pathShorten, "key", body).want(t, http.StatusCreated)
		owner.request(t, http.MethodPost, pathShorten, body).want(t, http.StatusCreated)
		owner.wantLinks(t, 2)
		other.wantLinks(t, 1)
	})
	t.Run("creates the links of a bulk call once, and counts a repetition as one request", func(t *testing.T) {
		owner := s.caller(t, "bulk@example.org")
		links := `{"links":[{"long_url":"https://example.com/","custom_alias":"bulk-1"},7,{"long_url":"x"},` +
			strings.Repeat(`{"long_url":"https://example.com/"},`, 300) + `{"long_url":"http://bad.example"}]}`
		first := owner.keyed(t, pathBulk, "key", links)
		wantLink(t, first.body, map[string]any{"created": json.Number("301"), "failed": json.Number("3")})
		before := first.header.Get("X-RateLimit-Remaining")
		again := owner.keyed(t, pathBulk, "key", links)
		again.wantReplay(t, first)
		owner.wantLinks(t, 301)
		var left, was int
		fmt.Sscan(before, &was)
		fmt.Sscan(again.header.Get("X-RateLimit-Remaining"), &left)
		if left != was-1 && left != 1999 { // of the same window or the next one
			t.Errorf("%d requests are left after %d", left, was)
		}
		owner.keyed(t, pathBulk, "failed", `{"links":[{}]}`).want(t, http.StatusOK)
		wantLink(t, owner.keyed(t, pathBulk, "failed", `{"links":[{}]}`).body, map[string]any{"created": json.Number("0")})
	})
	t.Run("is free after an error", func(t *testing.T) {
		owner := s.caller(t, "errors@example.org")
		owner.link(t, map[string]any{"long_url": "https://example.com/", "custom_alias": "used"})
		for _, invalid := range []string{`{`, `{"long_url":"x"}`, `{"long_url":"http://bad.example"}`,
			`{"long_url":"https://a.example","custom_alias":"used"}`} {
			if a := owner.keyed(t, pathShorten, "key", invalid); a.status < 400 {
				t.Errorf("%s: %s", invalid, a.raw)
			}
		}
		owner.keyed(t, pathBulk, "key", `{"links":[]}`).wantInvalid(t, "links")
		owner.keyed(t, pathShorten, "key", `{"long_url":"https://a.example","custom_alias":"free"}`).want(t,
			http.StatusCreated)
		owner.wantLinks(t, 2)
	})
	t.Run("has 1 to 255 visible ASCII characters", func(t *testing.T) {
		owner := s.caller(t, "form@example.org")
		for _, key := range []string{"!", "~", strings.Repeat("k", 255), `"a-b",;=`} {
			owner.keyed(t, pathShorten, key, body).want(t, http.StatusCreated)
		}
		for _, key := range []string{"", strings.Repeat("k", 256), "a b", "a\tb", "é"} {
			a, err := owner.try(t.Context(), http.MethodPost, pathShorten, body, headerKey, key)
			testkit.Must(t, err)
			a.wantInvalid(t, headerKey)
		}
		twice, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.base+pathShorten, strings.NewReader(body))
		testkit.Must(t, err)
		twice.Header = http.Header{"Authorization": {"Bearer " + owner.token}, "Content-Type": {"application/json"},
			headerKey: {"a", "a"}}
		res, err := s.client.Do(twice)
		testkit.Must(t, err)
		testkit.Must(t, res.Body.Close())
		testkit.Equal(t, "status of a request with two keys", res.StatusCode, http.StatusUnprocessableEntity)
	})
}

// TestIdempotencyKeyUnderWay holds the first call while others with its key arrive.
func TestIdempotencyKeyUnderWay(t *testing.T) {
	reached, release := make(chan struct{}), make(chan struct{})
	var once atomic.Bool
	s := startFaulty(t, storetest.FaultOf(func(context.Context) error {
		if once.CompareAndSwap(false, true) {
			close(reached)
			<-release
		}
		return nil
	}, "CreateLinks"))
	owner, other := s.caller(t, "a@example.org"), s.caller(t, "b@example.org")
	const body = `{"long_url":"https://example.com/"}`
	first := make(chan answer, 1)
	go func() {
		a, err := owner.try(context.Background(), http.MethodPost, pathShorten, body, headerKey, "key")
		if err != nil {
			t.Error(err)
		}
		first <- a
	}()
	<-reached
	for _, sent := range []string{body, `{}`} {
		a := owner.keyed(t, pathShorten, "key", sent)
		a.wantKeys(t, http.StatusConflict, "message")
		testkit.Equal(t, "Retry-After", a.header.Get("Retry-After"), "1")
	}
	other.keyed(t, pathShorten, "key", body).want(t, http.StatusCreated)
	owner.keyed(t, pathShorten, "another", body).want(t, http.StatusCreated)
	close(release)
	created := <-first
	created.want(t, http.StatusCreated)
	owner.keyed(t, pathShorten, "key", body).wantReplay(t, created)
	owner.wantLinks(t, 2)
}

// TestIdempotencyKeyOfOtherProcesses makes the store answer as if another process had used the key during the request.
func TestIdempotencyKeyOfOtherProcesses(t *testing.T) {
	const body = `{"long_url":"https://example.com/"}`
	var s *testService
	var meanwhile func(ctx context.Context) error
	s = startFaulty(t, storetest.FaultOf(func(ctx context.Context) error { return meanwhile(ctx) }, "CreateLinks"))
	owner := s.caller(t, "a@example.org")
	t.Run("it has created the link", func(t *testing.T) {
		meanwhile = func(ctx context.Context) error {
			writer, err := zstd.NewWriter(nil)
			testkit.Must(t, err)
			return s.links.CreateLinks(ctx, &schema.LinkBatch{AccountID: owner.account.ID,
				Call: &schema.IdempotentCall{AccountID: owner.account.ID, Key: sha256.Sum256([]byte("done")),
					Request: sha256.Sum256([]byte(pathShorten + "\n" + body)), At: time.Now()},
				Answer: func([]schema.Link, []error) ([]byte, error) {
					return writer.EncodeAll([]byte(`{"success":true,"short_url":"https://sho.rt/abc",`+
						`"original_url":"https://example.com/","hash":"abc","created_at":"2026-11-21T09:30:15+00:00"}`), nil), nil
				}})
		}
		a := owner.keyed(t, pathShorten, "done", body)
		a.want(t, http.StatusCreated)
		testkit.Equal(t, "hash", a.body["hash"], any("abc"))
		testkit.Equal(t, "Idempotency-Replayed", a.header.Get("Idempotency-Replayed"), "true")
	})
	t.Run("it is creating the link", func(t *testing.T) {
		meanwhile = func(context.Context) error {
			return schema.Errorf(schema.CodeConflict, "create: %w", schema.ErrCallUnderWay)
		}
		a := owner.keyed(t, pathShorten, "doing", body)
		a.wantKeys(t, http.StatusConflict, "message")
		testkit.Equal(t, "Retry-After", a.header.Get("Retry-After"), "1")
	})
	t.Run("it has used up the keys", func(t *testing.T) {
		meanwhile = func(context.Context) error {
			return schema.Errorf(schema.CodeConflict, "create: %w", schema.ErrTooManyKeys)
		}
		owner.keyed(t, pathShorten, "more", body).wantInvalid(t, headerKey)
	})
	owner.wantLinks(t, 0)
}

// lostCommit is a store whose connection breaks between a commit and its answer.
type lostCommit struct {
	schema.Database
	broken atomic.Bool // from the next commit on
}

func (s *lostCommit) CreateLinks(ctx context.Context, batch *schema.LinkBatch) error {
	if err := s.Database.CreateLinks(ctx, batch); err != nil || !s.broken.Swap(false) {
		return err
	}
	return schema.Errorf(schema.CodeUnavailable, "the connection is broken")
}

func TestIdempotencyKeyAfterALostCommit(t *testing.T) {
	var store lostCommit
	s := startWrapped(t, nil, func(links schema.Database) schema.Database {
		store.Database = links
		return &store
	})
	owner := s.caller(t, "a@example.org")
	for links, c := range []struct{ path, body string }{
		{pathShorten, `{"long_url":"https://example.com/1"}`},
		{pathBulk, `{"links":[{"long_url":"https://example.com/2"},{"long_url":"not a URL"}]}`},
	} {
		store.broken.Store(true)
		wantOutage(t, owner.keyed(t, c.path, c.path, c.body), "Links cannot be created")
		owner.wantLinks(t, int64(links+1))
		again := owner.keyed(t, c.path, c.path, c.body)
		testkit.Equal(t, "Idempotency-Replayed", again.header.Get("Idempotency-Replayed"), "true")
		newest, _, err := s.links.Links(t.Context(), owner.account.ID, schema.LinkFilter{}, 1)
		testkit.Must(t, err)
		if !strings.Contains(again.raw, `"hash":"`+newest[0].Hash+`"`) {
			t.Errorf("the answer is not about the link %q: %s", newest[0].Hash, again.raw)
		}
		owner.wantLinks(t, int64(links+1))
	}
}

func TestIdempotencyKeyOutage(t *testing.T) {
	s := startFaulty(t, storetest.FaultOf(down, "RecordedCall"))
	owner := s.caller(t, "a@example.org")
	wantOutage(t, owner.keyed(t, pathShorten, "key", `{"long_url":"https://example.com/"}`), "Links cannot be created")
	owner.wantLinks(t, 0)
}
