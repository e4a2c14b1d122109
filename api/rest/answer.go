package rest

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/valyala/fasthttp"

	"linkstream/api/request"
	"linkstream/schema"
	"linkstream/schema/service"
)

const (
	// storeRetryAfter is the Retry-After, in seconds, of answers about a store that is unavailable.
	storeRetryAfter = "5"
	// busyRetryAfter is the Retry-After of requests that was refused for want of a turn.
	busyRetryAfter = "1"
)

// outage is the error of an unavailable store. Its message names the operations that fail during the outage.
type outage struct {
	what string // as in "Clicks cannot be read"
	err  error
}

func (e *outage) Error() string { return e.err.Error() }
func (e *outage) Unwrap() error { return e.err }

// Outages of stores that several endpoints need.
const (
	readingLinks  = "Links cannot be read"
	readingClicks = "Clicks cannot be read"
	creatingLinks = "Links cannot be created"
)

// withOutage makes err an outage if its code is CodeUnavailable, and returns other errors unchanged.
func withOutage(what string, err error) error {
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

// httpError is an error of the HTTP request itself, for which package schema has no code.
type httpError struct {
	status  int
	message string
	code    string // the kind of error, for programs; "" if the status says it
}

func (e *httpError) Error() string { return e.message }

var (
	errSuspended = schema.ClientErrorf(schema.CodeForbidden, "The account is suspended.")
	errNoPath    = schema.ClientErrorf(schema.CodeNotFound, "There is nothing at this path.")
	errMethod    = &httpError{status: fasthttp.StatusMethodNotAllowed, message: "This path does not support the method: " +
		"see the Allow header."}
	errBody = &httpError{status: fasthttp.StatusBadRequest, message: "The body is not one JSON object."}
	errType = &httpError{status: fasthttp.StatusUnsupportedMediaType, message: "The Content-Type must be " +
		"application/json."}
	errCoding = &httpError{status: fasthttp.StatusUnsupportedMediaType,
		message: "The Content-Encoding must be identity: send the body uncompressed."}
	errBusy = &httpError{status: fasthttp.StatusServiceUnavailable, message: "Too many requests without a valid token " +
		"at the moment."}
	errTooMany = &httpError{status: fasthttp.StatusTooManyRequests, message: "Too many requests: wait for the " +
		"seconds in " +
		"Retry-After."}
	errScope = &httpError{fasthttp.StatusForbidden, "The token lacks the scope of this request.", "missing_scope"}
)

// answer writes body as JSON.
func answer(http *fasthttp.RequestCtx, status int, body any) error {
	http.Response.ResetBody()
	http.SetStatusCode(status)
	http.SetContentType("application/json")
	return encode(http, body)
}

// answerText writes an answer that has been encoded.
func answerText(http *fasthttp.RequestCtx, status int, text []byte) {
	http.SetStatusCode(status)
	http.SetContentType("application/json")
	http.Response.SetBodyRaw(text)
}

// encode writes body as JSON. It does not escape <, > and &, so that URLs read as they were given.
func encode(w io.Writer, body any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(body)
}

// fail answers with an error. An error that is not the client's fault is logged, and its cause is not sent.
func (a *API) fail(http *fasthttp.RequestCtx, err error) {
	status, body := a.explain(http, err)
	if err := answer(http, status, body); err != nil {
		a.log.Error("cannot write answer", "error", err)
	}
}

// explain returns the status and the body for an error, and sets the headers that belong to them. Errors without a
// message for the client are the service's own failures, whatever their code: a store's code says what happened to the
// store's own objects, and the client may have asked for others.
func (a *API) explain(http *fasthttp.RequestCtx, err error) (status int, body failure) {
	var ofHTTP *httpError
	if errors.As(err, &ofHTTP) {
		return ofHTTP.status, failure{Error: ofHTTP.code, Message: ofHTTP.message}
	}
	var unread *request.Refusal
	if errors.As(err, &unread) {
		if unread.Status == fasthttp.StatusTooManyRequests || unread.Status == fasthttp.StatusServiceUnavailable { // no room
			http.Response.Header.Set("Retry-After", busyRetryAfter)
		}
		return unread.Status, failure{Message: unread.Message}
	}
	var e *schema.Error
	if errors.As(err, &e) && e.Message != "" {
		switch e.Code {
		case schema.CodeUnauthorized:
			http.Response.Header.Set("WWW-Authenticate", "Bearer")
			return fasthttp.StatusUnauthorized, failure{Message: e.Message}
		case schema.CodeForbidden:
			return fasthttp.StatusForbidden, failure{Error: string(e.Code), Message: e.Message}
		case schema.CodeNotFound:
			return fasthttp.StatusNotFound, failure{Error: string(e.Code), Message: e.Message}
		case schema.CodeInvalid:
			return fasthttp.StatusUnprocessableEntity, failure{Message: e.Message, Errors: e.Fields}
		case schema.CodeBusy:
			http.Response.Header.Set("Retry-After", storeRetryAfter)
			return fasthttp.StatusServiceUnavailable, failure{Message: e.Message}
		case schema.CodeUnsafeURL:
			return fasthttp.StatusUnprocessableEntity, failure{Error: string(e.Code), Message: e.Message}
		}
	}
	a.log.Error("request failed", "request_id", request.ID(http), "method", string(http.Method()), "path",
		service.RedactPath(string(http.URI().PathOriginal())), "error", err)
	if schema.ErrorCode(err) == schema.CodeUnavailable {
		http.Response.Header.Set("Retry-After", storeRetryAfter)
		cannot := &outage{what: "The service cannot answer"}
		errors.As(err, &cannot)
		message := cannot.what + " at the moment: try again in " + storeRetryAfter + " seconds."
		return fasthttp.StatusServiceUnavailable, failure{Message: message}
	}
	return fasthttp.StatusInternalServerError, failure{Message: "Something went wrong on our side."}
}
