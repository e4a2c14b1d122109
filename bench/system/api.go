package system

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"linkstream/api/ratelimit"
	"linkstream/bench/load"
	"linkstream/bench/workload"
	"linkstream/schema"
)

const (
	callTimeout = 30 * time.Second
	maxAnswer   = 4 << 20
	tokenTurn   = 1900 // requests with one token before the next one is used
	// tokenRate is the requests per second of a load with one token of a running system. It leaves a fifth of the limit
	// to calls that are not load.
	tokenRate = 0.8 * ratelimit.RequestLimit / 60
)

// API is a client of the API. It rotates through its tokens and waits where the rate limit requires it.
type API struct {
	base    string
	tokens  *tokens // other clients may share them
	session string  // secret of a session of the dashboard; "": none
	// Quota is the requests per second that the tokens of a running system allow a load; 0: enough for any.
	Quota float64

	mu   sync.Mutex
	made []string // hashes of links in a running system
}

// tokens are API tokens of one account.
type tokens struct {
	secrets []string
	used    atomic.Int64 // requests of their rate limits
}

// use returns the next token once the current one has nearly used up its rate limit. A call takes n requests from it.
func (t *tokens) use(n int64) string {
	return t.secrets[int(t.used.Add(n)/tokenTurn)%len(t.secrets)]
}

// LinkPage is the part of a list page that a run reads.
type LinkPage struct {
	Data []struct {
		Hash   string `json:"hash"`
		Clicks int64  `json:"clicks"`
	} `json:"data"`
	Meta struct {
		LastPage int `json:"last_page"`
		Total    int `json:"total"`
	} `json:"meta"`
}

// Links returns a page of the account's links, the newest first.
func (a *API) Links(ctx context.Context, page int) (links LinkPage, err error) {
	err = a.call(ctx, http.MethodGet, fmt.Sprintf("/api/v1/links?page=%d", page), nil, http.StatusOK, &links)
	return links, err
}

// Clicks returns the clicks of a link according to its statistics.
func (a *API) Clicks(ctx context.Context, hash string) (int64, error) {
	var answer struct {
		Stats struct {
			TotalClicks int64 `json:"total_clicks"`
		} `json:"stats"`
	}
	err := a.call(ctx, http.MethodGet, "/api/v1/stats/"+hash, nil, http.StatusOK, &answer)
	return answer.Stats.TotalClicks, err
}

// Shorten creates a link with the given hash.
func (a *API) Shorten(ctx context.Context, hash, url string) error {
	body, err := json.Marshal(map[string]string{"long_url": url, "custom_alias": hash})
	if err != nil {
		return err
	}
	return a.call(ctx, http.MethodPost, "/api/v1/shorten", body, http.StatusCreated, new(any))
}

// create creates links, many per call.
func (a *API) create(ctx context.Context, links workload.Links) error {
	var all []map[string]string
	for i := range links.Count {
		a.made = append(a.made, links.Hash(i)) // also if the answer is lost
		all = append(all, map[string]string{"long_url": links.URL(i), "custom_alias": links.Hash(i)})
	}
	return a.callMany(ctx, "/api/v1/links/bulk", all, "created")
}

// Made notes the hashes in an answer with new links, which deleteMade deletes from a running system.
func (a *API) Made(answer []byte) {
	if a.Quota == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, hash := range madeHash.FindAllSubmatch(answer, -1) {
		a.made = append(a.made, string(hash[1]))
	}
}

var madeHash = regexp.MustCompile(`"hash":"([^"]+)"`)

// deleteMade moves all links of the run to the trash, also if the run has been interrupted.
func (a *API) deleteMade() error {
	ctx, cancel := context.WithTimeout(context.Background(), AwaitTimeout)
	defer cancel()
	var all []map[string]string
	for _, hash := range a.made {
		all = append(all, map[string]string{"hash": hash})
	}
	return a.callMany(ctx, "/api/v1/links/bulk/delete", all, "") // not all may exist
}

// callMany makes calls for many links. done, unless empty, is the number in an answer that counts all of them.
func (a *API) callMany(ctx context.Context, path string, all []map[string]string, done string) error {
	for links := range slices.Chunk(all, schema.MaxLinkBatch) {
		body, err := json.Marshal(map[string]any{"links": links})
		if err != nil {
			return err
		}
		answer := map[string]any{}
		if err := a.call(ctx, http.MethodPost, path, body, http.StatusOK, &answer); err != nil {
			return err
		}
		if done != "" && answer[done] != float64(len(links)) {
			return fmt.Errorf("%s: %v of %d links are %s", path, answer[done], len(links), done)
		}
	}
	return nil
}

// Share shares a report, of a link or by {} of the account, and returns its path.
func (a *API) Share(ctx context.Context, of string) (path string, err error) {
	var answer struct {
		Share struct {
			URL string `json:"url"`
		} `json:"share"`
	}
	err = a.call(ctx, http.MethodPost, "/api/v1/shares", []byte(of), http.StatusCreated, &answer)
	return strings.TrimPrefix(answer.Share.URL, a.base), err
}

// call sends a request and decodes the answer. If the rate limit is reached, it waits and tries again.
func (a *API) call(ctx context.Context, method, path string, body []byte, want int, answer any) error {
	for {
		status, pause, content, err := a.try(ctx, method, path, body)
		switch {
		case err != nil:
			return fmt.Errorf("%s %s: %w", method, path, err)
		case status == want:
			if err := json.Unmarshal(content, answer); err != nil {
				return fmt.Errorf("%s %s: read answer: %w", method, path, err)
			}
			return nil
		case status != http.StatusTooManyRequests:
			return fmt.Errorf("%s %s: status %d: %s", method, path, status, content)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("%s %s: wait for the rate limit: %w", method, path, ctx.Err())
		}
	}
}

func (a *API) try(ctx context.Context, method, path string, body []byte) (
	status int, pause time.Duration, content []byte, err error,
) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+a.tokens.use(1))
	req.Header.Set("Accept", "application/json")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, 0, nil, err
	}
	defer res.Body.Close()
	content, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	seconds, _ := strconv.Atoi(res.Header.Get("Retry-After")) // present with status 429 only
	return res.StatusCode, time.Duration(seconds) * time.Second, content, err
}

// Addr returns the host:port of the API.
func (a *API) Addr() string { return strings.TrimPrefix(a.base, "http://") }

// AppendRequest appends a request in wire format to dst, for a load.
func (a *API) AppendRequest(dst []byte, method, path string, body []byte) []byte {
	return a.AppendCounted(dst, 1, method, path, body)
}

// AppendCounted is AppendRequest for a request that counts as n of the rate limit.
func (a *API) AppendCounted(dst []byte, n int64, method, path string, body []byte) []byte {
	dst = fmt.Appendf(dst, "%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nAccept: application/json\r\n",
		method, path, a.Addr(), a.tokens.use(n))
	if body != nil {
		dst = fmt.Appendf(dst, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	return append(append(dst, "\r\n"...), body...)
}

// AppendExport appends a request for a file of all links to dst. Only the owner of a catalogue has a session for it.
func (a *API) AppendExport(dst []byte) []byte {
	return fmt.Appendf(dst, "GET /dashboard/export.csv HTTP/1.1\r\nHost: %s\r\nCookie: linkstream=%s\r\n\r\n", a.Addr(),
		a.session)
}

// uploadField is the field of the form that uploads a file, by which the dashboard recognizes its own forms.
var uploadField = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// Upload returns what appends an upload of a file of links to a request. Only the owner of a catalogue has a session
// for it.
func (a *API) Upload(ctx context.Context) (appendTo func(dst []byte) []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+"/dashboard/import", nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Cookie", "linkstream="+a.session)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	page, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	field := uploadField.FindSubmatch(page)
	if field == nil {
		return nil, fmt.Errorf("the page of imports has no form: status %d", res.StatusCode)
	}
	body := fmt.Appendf(nil, "--b\r\nContent-Disposition: form-data; name=\"csrf\"\r\n\r\n%s\r\n"+
		"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\nlong_url\r\n%s--b--\r\n",
		field[1], bytes.Repeat([]byte("https://example.com/\r\n"), 1<<16))
	request := fmt.Appendf(nil, "POST /dashboard/import HTTP/1.1\r\nHost: %s\r\nOrigin: %s\r\nCookie: linkstream=%s\r\n",
		a.Addr(), a.base, a.session)
	request = fmt.Appendf(request, "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: %d\r\n\r\n%s",
		len(body), body)
	return func(dst []byte) []byte { return append(dst, request...) }, nil
}

// Of returns the client of the API that the owner of a catalogue uses.
func (a *API) Of(c Catalogue) *API {
	return &API{base: a.base, tokens: &tokens{secrets: c.tokens}, session: c.session}
}

// StatusError returns the error for an answer with an unexpected status.
func StatusError(a load.Answer) error {
	if a.Status == http.StatusTooManyRequests {
		return errors.New("the rate limit of the tokens is reached: make the run shorter or slower, or name more tokens")
	}
	return fmt.Errorf("status %d: %.200s", a.Status, a.Body)
}
