package rest

import (
	"encoding/json"
	"errors"

	"github.com/valyala/fasthttp"

	"linkstream/schema"
)

// storeRetryAfter is when to come back to a store that does not answer, in seconds.
const storeRetryAfter = "5"

// outage is an error of a store that does not answer, and what a client cannot have or do until it does.
type outage struct {
	what string // as in "Clicks cannot be read"
	err  error
}

func (e *outage) Error() string { return e.err.Error() }
func (e *outage) Unwrap() error { return e.err }

// What a client is told of the stores that more than one path needs.
const (
	readingLinks  = "Links cannot be read"
	readingClicks = "Clicks cannot be read"
)

// during says what the client is told if err is that a store does not answer. Other errors stay as they are.
func during(what string, err error) error {
	if schema.ErrorCode(err) != schema.CodeUnavailable {
		return err
	}
	return &outage{what, err}
}

// failure is the body of every error.
type failure struct {
	Error   string              `json:"error,omitempty"`
	Message string              `json:"message"`
	Errors  map[string][]string `json:"errors,omitempty"`
}

// httpError is an error of HTTP itself, which the contracts of the service know nothing of.
type httpError struct {
	status  int
	message string
}

func (e *httpError) Error() string { return e.message }

var (
	errSuspended = schema.Errorf(schema.CodeForbidden, "The account is suspended.")
	errNoPath    = schema.Errorf(schema.CodeNotFound, "There is nothing at this path.")
	errMethod    = &httpError{fasthttp.StatusMethodNotAllowed, "The path does not take this method: see Allow."}
	errBody      = &httpError{fasthttp.StatusBadRequest, "The body is not one JSON object."}
	errType      = &httpError{fasthttp.StatusUnsupportedMediaType, "The Content-Type must be application/json."}
	errTooMany   = &httpError{fasthttp.StatusTooManyRequests, "Too many requests: wait for the seconds in Retry-After."}
)

// answer writes the answer. URLs in it read as they were given: JSON needs no escapes for <, > and &.
func answer(http *fasthttp.RequestCtx, status int, body any) error {
	http.Response.ResetBody()
	http.SetStatusCode(status)
	http.SetContentType("application/json")
	encoder := json.NewEncoder(http)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(body)
}

// fail writes the answer to an error. What is not the client's doing is logged and not told.
func (a *API) fail(http *fasthttp.RequestCtx, err error) {
	status, body := a.explain(http, err)
	if err := answer(http, status, body); err != nil {
		a.log.Error("answer not written", "error", err)
	}
}

// explain returns the status and the body that an error is answered with, and sets the headers that go with it.
func (a *API) explain(http *fasthttp.RequestCtx, err error) (status int, body failure) {
	var ofHTTP *httpError
	if errors.As(err, &ofHTTP) {
		return ofHTTP.status, failure{Message: ofHTTP.message}
	}
	var e *schema.Error
	errors.As(err, &e)
	switch code := schema.ErrorCode(err); code {
	case schema.CodeUnauthorized:
		http.Response.Header.Set("WWW-Authenticate", "Bearer")
		return fasthttp.StatusUnauthorized, failure{Message: e.Message}
	case schema.CodeForbidden:
		return fasthttp.StatusForbidden, failure{Error: string(code), Message: e.Message}
	case schema.CodeNotFound:
		return fasthttp.StatusNotFound, failure{Error: string(code), Message: e.Message}
	case schema.CodeInvalid:
		return fasthttp.StatusUnprocessableEntity, failure{Message: e.Message, Errors: e.Fields}
	case schema.CodeUnsafeURL:
		return fasthttp.StatusUnprocessableEntity, failure{Error: string(code), Message: e.Message}
	}
	a.log.Error("request failed", "method", string(http.Method()), "path", string(http.URI().PathOriginal()), "error", err)
	if schema.ErrorCode(err) == schema.CodeUnavailable {
		http.Response.Header.Set("Retry-After", storeRetryAfter)
		cannot := &outage{what: "The service cannot answer"}
		errors.As(err, &cannot)
		message := cannot.what + " at the moment: try again in " + storeRetryAfter + " seconds."
		return fasthttp.StatusServiceUnavailable, failure{Message: message}
	}
	return fasthttp.StatusInternalServerError, failure{Message: "Something went wrong on our side."}
}
