// Package client calls the API of a linkstream service:
//
//	api, err := client.Connect("https://links.example.com", os.Getenv("LINKSTREAM_TOKEN"))
//	link := client.LinkRequest{LongUrl: "https://go.dev/"}
//	made, err := client.Read[client.CreatedLink](api.CreateLink(ctx, nil, link))
//	fmt.Println(made.ShortUrl)
//
// client.gen.go has a method of Client for each operation of the API's description and a type for each of its schemas;
// "go generate ./api/client" writes it. The rest is written by hand: Connect makes a Client that waits and repeats as
// the API asks, Read returns the answer of a call or its *Error, and Watch follows a live stream.
package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:generate go tool oapi-codegen -config generate.yaml -o client.gen.go ../rest/openapi.json

const (
	idempotencyKey = "Idempotency-Key"
	// maxTries bounds how often a request is sent while the service asks to send it later.
	maxTries = 5
	// maxWait bounds one wait. The API's windows have a minute.
	maxWait = 2 * time.Minute
	// maxSilence bounds the time without a byte of the answer. A live stream has a comment every 15 seconds.
	maxSilence = time.Minute
)

// errSilent is the cause of the end of a request that was not answered.
var errSilent = fmt.Errorf("the service sent nothing for %v", maxSilence)

// Connect returns a client of the service at base, such as https://links.example.com. Requests carry the API token,
// each POST an Idempotency-Key. A request that is answered with 409, 429 or 503 and Retry-After is sent again after
// that time, at most four times. It fails when no byte of its answer comes for a minute, and follows no redirects.
// Options may replace what sends the requests.
func Connect(base, token string, options ...ClientOption) (*Client, error) {
	return NewClient(base, append([]ClientOption{WithHTTPClient(&Sender{Token: token})}, options...)...)
}

// Sender sends requests as the API asks its clients to, see Connect. It is an HttpRequestDoer.
type Sender struct {
	Token string
	Agent string // of the header User-Agent, if it is not empty
	// Transport sends each request once; nil for http.DefaultTransport.
	Transport http.RoundTripper
	// Waits is called before each wait, if it is not nil.
	Waits func(time.Duration)
}

// Do sends a request. Its body is sent again if it is one that http.NewRequest can read again.
func (s *Sender) Do(req *http.Request) (*http.Response, error) {
	req.Header.Set("Authorization", "Bearer "+s.Token)
	if s.Agent != "" {
		req.Header.Set("User-Agent", s.Agent)
	}
	if req.Method == http.MethodPost && req.Header.Get(idempotencyKey) == "" {
		req.Header.Set(idempotencyKey, rand.Text())
	}
	for try := 1; ; try++ {
		resp, err := s.send(req)
		if err != nil {
			return nil, err
		}
		wait := asksToWait(resp)
		if wait == 0 || try == maxTries || req.Body != nil && req.GetBody == nil {
			return resp, nil
		}
		resp.Body.Close()
		if s.Waits != nil {
			s.Waits(wait)
		}
		select {
		case <-req.Context().Done():
			return nil, context.Cause(req.Context())
		case <-time.After(wait):
		}
		if req.GetBody != nil {
			if req.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// asksToWait returns how long the service asks to wait before the request is sent again, 0 if it does not.
func asksToWait(resp *http.Response) time.Duration {
	switch resp.StatusCode {
	case http.StatusConflict, http.StatusTooManyRequests, http.StatusServiceUnavailable:
	default:
		return 0
	}
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if wait := time.Duration(seconds) * time.Second; err == nil && 0 < wait && wait <= maxWait {
		return wait
	}
	return 0
}

// send sends a request once, and ends it when it is silent for too long.
func (s *Sender) send(req *http.Request) (*http.Response, error) {
	ctx, end := context.WithCancelCause(req.Context())
	silence := time.AfterFunc(maxSilence, func() { end(errSilent) })
	once := http.Client{Transport: s.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := once.Do(req.WithContext(ctx))
	silence.Stop()
	if err != nil {
		if context.Cause(ctx) == errSilent {
			err = &url.Error{Op: req.Method, URL: req.URL.Redacted(), Err: errSilent}
		}
		end(nil)
		return nil, err
	}
	resp.Body = &timedBody{resp.Body, silence, ctx, end}
	return resp, nil
}

// timedBody is a body that cancels its request when a Read gets no byte for maxSilence.
type timedBody struct {
	io.ReadCloser
	silence *time.Timer
	ctx     context.Context
	end     context.CancelCauseFunc
}

func (b *timedBody) Read(p []byte) (int, error) {
	b.silence.Reset(maxSilence)
	defer b.silence.Stop() // the caller may take its time
	n, err := b.ReadCloser.Read(p)
	if cause := context.Cause(b.ctx); err != nil && err != io.EOF && cause != nil {
		err = cause
	}
	return n, err
}

func (b *timedBody) Close() error {
	b.end(nil)
	return b.ReadCloser.Close()
}

// Error is an answer of the service that is not a success.
type Error struct {
	Status  int                 `json:"-"`       // of HTTP
	Message string              `json:"message"` // for people
	Code    string              `json:"error"`   // for programs, such as not_found; may be ""
	Fields  map[string][]string `json:"errors"`  // what is wrong with each invalid field
}

// Error returns the message, and what is wrong with fields.
func (e *Error) Error() string {
	if len(e.Fields) == 0 {
		return e.Message
	}
	var text strings.Builder
	for _, field := range slices.Sorted(maps.Keys(e.Fields)) {
		fmt.Fprintf(&text, "%s: %s\n", field, strings.Join(e.Fields[field], " "))
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// Read returns the body of a successful answer, an *Error for any other, and a *url.Error, as package net/http does, if
// there is no answer or a part of one. It takes the results of a call of Client. T is the type of the body,
// json.RawMessage for the body as it is, or []byte for a body that is not JSON.
func Read[T any](resp *http.Response, err error) (answer T, _ error) {
	if err != nil {
		return answer, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer, &url.Error{Op: "Read", URL: resp.Request.URL.Redacted(), Err: err}
	}
	if resp.StatusCode/100 != 2 {
		return answer, failure(resp, body)
	}
	if raw, ok := any(&answer).(*[]byte); ok {
		*raw = body
		return answer, nil
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return answer, errors.New("the answer is not one of the API: " + err.Error())
	}
	return answer, nil
}

// Copy writes the body of a successful answer to w while it arrives. It takes the results of a call of Client, and
// returns the errors that Read does, and the errors of w.
func Copy(w io.Writer, resp *http.Response, err error) error {
	if err != nil || resp.StatusCode/100 != 2 {
		_, err = Read[[]byte](resp, err)
		return err
	}
	defer resp.Body.Close()
	body := &watchedReader{Reader: resp.Body}
	if _, err = io.Copy(w, body); err != nil && err == body.err {
		err = &url.Error{Op: "Read", URL: resp.Request.URL.Redacted(), Err: err}
	}
	return err
}

// watchedReader keeps its last error.
type watchedReader struct {
	io.Reader
	err error
}

func (r *watchedReader) Read(some []byte) (n int, err error) {
	n, r.err = r.Reader.Read(some)
	return n, r.err
}

// failure returns the error that an answer says.
func failure(resp *http.Response, body []byte) *Error {
	e := &Error{}
	if json.Unmarshal(body, e) != nil || e.Message == "" {
		e.Message = "The answer is " + resp.Status + " and not one of the API."
		if to := resp.Header.Get("Location"); to != "" {
			e.Message += " It redirects to " + to
		}
	}
	e.Status = resp.StatusCode
	return e
}
