package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"linkstream/bench/load"
)

const (
	callTimeout = 30 * time.Second
	maxAnswer   = 4 << 20
	tokenTurn   = 1900 // requests that are made with one token before the next one
)

// api is a client of the API that takes its tokens in turn, and waits where the rate limit says so.
type api struct {
	base   string
	tokens []string
	turn   atomic.Int64
}

// linkPage is what is read of a page of the list of links.
type linkPage struct {
	Data []struct {
		Hash   string `json:"hash"`
		Clicks int64  `json:"clicks"`
	} `json:"data"`
	Meta struct {
		LastPage int `json:"last_page"`
		Total    int `json:"total"`
	} `json:"meta"`
}

// links returns a page of the account's links, the newest first.
func (a *api) links(ctx context.Context, page int) (links linkPage, err error) {
	err = a.call(ctx, http.MethodGet, fmt.Sprintf("/api/v1/links?page=%d", page), nil, http.StatusOK, &links)
	return links, err
}

// clicks returns what the stats of a link say.
func (a *api) clicks(ctx context.Context, hash string) (int64, error) {
	var answer struct {
		Stats struct {
			TotalClicks int64 `json:"total_clicks"`
		} `json:"stats"`
	}
	err := a.call(ctx, http.MethodGet, "/api/v1/stats/"+hash, nil, http.StatusOK, &answer)
	return answer.Stats.TotalClicks, err
}

// shorten makes a link with a chosen hash.
func (a *api) shorten(ctx context.Context, hash, url string) error {
	body, err := json.Marshal(map[string]string{"long_url": url, "custom_alias": hash})
	if err != nil {
		return err
	}
	return a.call(ctx, http.MethodPost, "/api/v1/shorten", body, http.StatusCreated, new(any))
}

// call sends a request, again after a minute's rest if the limit is reached, and reads the answer.
func (a *api) call(ctx context.Context, method, path string, body []byte, want int, answer any) error {
	for {
		status, rest, content, err := a.try(ctx, method, path, body)
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
		case <-time.After(rest):
		case <-ctx.Done():
			return fmt.Errorf("%s %s: wait for the rate limit: %w", method, path, ctx.Err())
		}
	}
}

func (a *api) try(ctx context.Context, method, path string, body []byte) (
	status int, rest time.Duration, content []byte, err error,
) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+a.token())
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
	seconds, _ := strconv.Atoi(res.Header.Get("Retry-After")) // only with 429
	return res.StatusCode, time.Duration(seconds) * time.Second, content, err
}

// token returns the token whose turn it is: the next one when this one has used up nearly all of its limit, as a client
// in a hurry would.
func (a *api) token() string {
	return a.tokens[int(a.turn.Add(1)/tokenTurn)%len(a.tokens)]
}

// addr returns the host:port of the API.
func (a *api) addr() string { return strings.TrimPrefix(a.base, "http://") }

// appendCall appends a request as it is sent, for a load.
func (a *api) appendCall(dst []byte, method, path string, body []byte) []byte {
	dst = fmt.Appendf(dst, "%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nAccept: application/json\r\n",
		method, path, a.addr(), a.token())
	if body != nil {
		dst = fmt.Appendf(dst, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	return append(append(dst, "\r\n"...), body...)
}

// statusError is for an answer whose status ends a load.
func statusError(a load.Answer) error {
	if a.Status == http.StatusTooManyRequests {
		return errors.New("the rate limit of the tokens is reached: make the run shorter or slower, or name more tokens")
	}
	return fmt.Errorf("status %d: %.200s", a.Status, a.Body)
}

// firstNumber returns the number that follows the first key in a JSON text.
func firstNumber(text []byte, key string) (int64, error) {
	_, rest, found := bytes.Cut(text, []byte(key))
	digits := bytes.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if !found || digits <= 0 {
		return 0, fmt.Errorf("no number follows %s in %.200s", key, text)
	}
	return strconv.ParseInt(string(rest[:digits]), 10, 64)
}

// readMetric returns the sum of a metric of a node, over all of its labels.
func readMetric(ctx context.Context, base, name string) (sum float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("read metrics: %w", err)
	}
	defer res.Body.Close()
	found := false
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), " ")
		if key, _, _ = strings.Cut(key, "{"); key != name {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("read metric %q: %w", name, err)
		}
		found, sum = true, sum+n
	}
	if !found {
		return 0, fmt.Errorf("%s has no metric %q", base, name)
	}
	return sum, nil
}
