package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	callTimeout = 30 * time.Second
	maxAnswer   = 4 << 20
)

// api is a client of the API that takes its tokens in turn, and waits where the rate limit says so.
type api struct {
	base   string
	tokens []string
	turn   atomic.Int64
}

// linkItem is what is read of a link in a list.
type linkItem struct {
	Hash   string `json:"hash"`
	Clicks int64  `json:"clicks"`
}

// links returns a page of the account's links, and how many pages there are.
func (a *api) links(ctx context.Context, page int) (items []linkItem, pages int, err error) {
	var answer struct {
		Data []linkItem `json:"data"`
		Meta struct {
			LastPage int `json:"last_page"`
		} `json:"meta"`
	}
	err = a.call(ctx, http.MethodGet, fmt.Sprintf("/api/v1/links?page=%d", page), nil, http.StatusOK, &answer)
	return answer.Data, answer.Meta.LastPage, err
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

func (a *api) try(ctx context.Context, method, path string, body []byte) (status int, rest time.Duration, content []byte, err error) {
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

// token returns the token whose turn it is.
func (a *api) token() string { return a.tokens[int(a.turn.Add(1))%len(a.tokens)] }

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
