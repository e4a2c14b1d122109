package resttest

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// Event is a server-sent event of live counts.
type Event struct {
	ID     string
	Counts Object
}

// Stream is an open stream of live counts.
type Stream struct {
	Answer                 // without a body
	Events   <-chan Event  // closed when the stream ends
	Comments chan struct{} // an element per comment
	Close    func()
}

// Live opens a stream, and fails the test unless it is one.
func (c Caller) Live(t *testing.T, path string) *Stream {
	t.Helper()
	s := c.OpenLive(t, path)
	if s.Events == nil {
		t.Fatalf("%v", s.Answer)
	}
	return s
}

// OpenLive asks for a stream. Events is nil if the answer is another one. The stream ends with the test.
func (c Caller) OpenLive(t *testing.T, path string) *Stream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.API+path, nil)
	testkit.Must(t, err)
	req.Header.Set("Authorization", "Bearer "+c.Token)
	res, err := (&http.Client{Transport: client.Transport}).Do(req) // without a timeout
	testkit.Must(t, err)
	s := &Stream{Answer: Answer{Request: "GET " + path, Status: res.StatusCode, Header: res.Header}, Close: cancel}
	if res.StatusCode != http.StatusOK {
		res.Body.Close()
		return s
	}
	testkit.Equal(t, "content type", res.Header.Get("Content-Type"), "text/event-stream")
	events := make(chan Event, 1000)
	s.Events, s.Comments = events, make(chan struct{}, 1000)
	go func() {
		defer close(events)
		defer res.Body.Close()
		var event Event
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch {
			case name == ":":
				s.Comments <- struct{}{}
			case name == "id":
				event.ID = value
			case name == "data":
				event.Counts, _ = Decode(value).(Object)
			case name == "" && event.Counts != nil:
				events <- event
				event = Event{}
			}
		}
	}()
	return s
}

// Next returns the next event.
func (s *Stream) Next(t *testing.T) Event {
	t.Helper()
	select {
	case e, ok := <-s.Events:
		if !ok {
			t.Fatalf("%s has ended", s.Request)
		}
		return e
	case <-time.After(testkit.Patience):
		t.Fatalf("no event of %s", s.Request)
	}
	return Event{}
}

// WaitCounts waits for an event with these clicks.
func (s *Stream) WaitCounts(t *testing.T, people, bots int64) Event {
	t.Helper()
	for {
		e := s.Next(t)
		if Number(t, e.Counts, "people") == people && Number(t, e.Counts, "bots") == bots {
			testkit.Equal(t, "total_clicks", Number(t, e.Counts, "total_clicks"), people+bots)
			return e
		}
	}
}

// ended returns nil once the stream has ended.
func (s *Stream) ended() error {
	for {
		select {
		case _, ok := <-s.Events:
			if !ok {
				return nil
			}
		default:
			return fmt.Errorf("%s is open", s.Request)
		}
	}
}

// streamsOfAccount is how many streams an account may have open.
const streamsOfAccount = 10

func testLive(t *testing.T, s System) {
	owner, other, hash := s.account(t), s.account(t), label()
	owner.Link(t, Object{"long_url": "https://example.com/", "custom_alias": hash, "tags": []string{"sale"}})
	id, _ := s.domain(t, owner)
	ofLink := "/api/v1/links/" + hash + "/live"

	for path, want := range map[string]any{ofLink: hash, "/api/v1/live": nil, "/api/v1/live?tag=sale&domain_id=0": nil,
		"/api/v1/live?domain_id=" + id.String(): nil} {
		t.Run("the first event comes at once: "+path, func(t *testing.T) {
			stream := owner.Live(t, path)
			defer stream.Close()
			e := stream.Next(t)
			testkit.Equal(t, "hash", e.Counts["hash"], want)
			for _, name := range []string{"total_clicks", "people", "bots"} {
				testkit.Equal(t, name, Number(t, e.Counts, name), 0)
			}
			until, _ := e.Counts["counted_until"].(string)
			testkit.Equal(t, "id", e.ID, until)
			if until != "" {
				testkit.Must(t, moment(until))
			}
			remaining(t, stream.Answer)
		})
	}
	t.Run("a stream is one request of the rate limit", func(t *testing.T) {
		caller := s.caller(s.Admin(t, "token", "add", owner.email))
		before := remaining(t, caller.Get(t, "/api/v1/domains"))
		stream := caller.Live(t, ofLink)
		stream.Next(t)
		if left := remaining(t, stream.Answer); left != before-1 && left < before {
			t.Errorf("%d requests left, then %d", before, left)
		}
		stream.Close()
	})
	t.Run("HEAD answers without a stream", func(t *testing.T) {
		a := owner.Call(t, http.MethodHead, ofLink, "")
		testkit.Equal(t, "status", a.Status, http.StatusOK)
		testkit.Equal(t, "content type", a.Header.Get("Content-Type"), "text/event-stream")
	})
	t.Run("links of others are 404 or 422", func(t *testing.T) {
		other.Get(t, ofLink).WantError(t, http.StatusNotFound)
		other.Get(t, "/api/v1/live?domain_id="+id.String()).WantError(t, http.StatusUnprocessableEntity, "domain_id")
		owner.Get(t, "/api/v1/live?tag=A&domain_id=x").WantError(t, http.StatusUnprocessableEntity, "domain_id", "tag")
		s.nobody().Get(t, "/api/v1/live").WantError(t, http.StatusUnauthorized)
	})
}

func testLiveEnds(t *testing.T, s System) {
	owner, other, hash := s.account(t), s.account(t), label()
	owner.Alias(t, hash, "https://example.com/")
	t.Run("more streams than an account may have are 429, until one ends", func(t *testing.T) {
		var streams []*Stream
		for range streamsOfAccount {
			streams = append(streams, other.Live(t, "/api/v1/live"))
		}
		refused := other.Get(t, "/api/v1/live").WantError(t, http.StatusTooManyRequests)
		if refused.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		owner.Live(t, "/api/v1/links/"+hash+"/live").Close()
		streams[3].Close()
		testkit.Eventually(t, "another stream is served", func() bool {
			more := other.OpenLive(t, "/api/v1/live")
			streams = append(streams, more)
			return more.Status == http.StatusOK
		})
		for _, stream := range streams {
			stream.Close()
		}
	})
	t.Run("a stream of a deleted link ends", func(t *testing.T) {
		stream := owner.Live(t, "/api/v1/links/"+hash+"/live")
		owner.Call(t, http.MethodDelete, "/api/v1/links/"+hash, "").Want(t, http.StatusOK)
		testkit.Succeeds(t, stream.ended)
	})
	for what, end := range map[string]func(email, token string) (reverse []string){
		"when the account is suspended": func(email, _ string) []string {
			s.Admin(t, "account", "suspend", email)
			return []string{"account", "reinstate", email}
		},
		"when the token is revoked": func(_, token string) []string {
			s.Admin(t, "token", "revoke", token)
			return nil
		},
	} {
		t.Run("a stream ends within a second "+what, func(t *testing.T) {
			other := s.account(t)
			testkit.Follows(t, time.Second, func(int) func() error {
				token := s.Admin(t, "token", "add", other.email)
				var stream *Stream
				testkit.Eventually(t, "a stream is open", func() bool {
					stream = s.caller(token).OpenLive(t, "/api/v1/live")
					return stream.Events != nil
				})
				stream.Next(t)
				if reverse := end(other.email, token); reverse != nil {
					defer s.Admin(t, reverse...)
					testkit.Succeeds(t, stream.ended)
				}
				return stream.ended
			})
		})
	}
}
