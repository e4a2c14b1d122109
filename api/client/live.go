package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"strings"
	"time"
)

// longestPause bounds the time until Watch connects again.
const longestPause = 30 * time.Second

// LiveCounts is the state of a link, or of several, that a live stream sends.
type LiveCounts struct {
	Hash         string     `json:"hash,omitempty"` // only if it is one link
	TotalClicks  int64      `json:"total_clicks"`
	People       int64      `json:"people"`
	Bots         int64      `json:"bots"`
	CountedUntil *time.Time `json:"counted_until"` // all clicks up to this time are counted; nil if that is not known
}

// Watch returns the states of a live stream, which connect opens:
//
//	client.Watch(ctx, func() (*http.Response, error) { return api.LinkLive(ctx, "summer-sale", nil) })
//
// It connects again when a stream ends. As each state is complete, nothing is missed meanwhile. The sequence ends with
// ctx, without an error, and with the error if the service refuses the stream or the first one cannot be opened.
func Watch(ctx context.Context, connect func() (*http.Response, error)) iter.Seq2[LiveCounts, error] {
	return func(yield func(LiveCounts, error) bool) {
		for connected, pause := false, time.Second; ; pause = min(2*pause, longestPause) {
			stream, err := open(connect())
			if refused := new(Error); err != nil && ctx.Err() == nil &&
				(!connected || errors.As(err, &refused) && refused.Status < http.StatusInternalServerError) {
				yield(LiveCounts{}, err)
				return
			}
			if err == nil {
				more, some := states(stream, yield)
				if connected = true; !more {
					return
				}
				if some {
					pause = time.Second / 2 // it is doubled below
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
		}
	}
}

// open returns the stream of an answer, if it is one.
func open(resp *http.Response, err error) (*http.Response, error) {
	if err == nil && resp.StatusCode != http.StatusOK {
		_, err = Read[json.RawMessage](resp, nil)
	}
	return resp, err
}

// states yields the states of a stream of server-sent events until it ends. more says whether further ones are wanted,
// some whether there was one.
func states(stream *http.Response, yield func(LiveCounts, error) bool) (more, some bool) {
	defer stream.Body.Close()
	for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
		data, found := strings.CutPrefix(lines.Text(), "data:")
		var state LiveCounts
		if !found || json.Unmarshal([]byte(data), &state) != nil {
			continue // a comment, or the name or id of an event
		}
		if some = true; !yield(state, nil) {
			return false, true
		}
	}
	return true, some
}
