package dashboard

import (
	"errors"

	"github.com/valyala/fasthttp"

	"linkstream/api/request"
	"linkstream/schema"
	"linkstream/schema/service"
)

// failure is an error with a page of its own.
type failure struct {
	Status int
	Title  string
	Text   string
}

func (f *failure) Error() string { return f.Title }

var (
	errNoPage = &failure{fasthttp.StatusNotFound, "Page not found",
		"It may have been deleted, or the address is misspelled."}
	errMethod = &failure{fasthttp.StatusMethodNotAllowed, "This page does not accept that request",
		"Nothing was changed."}
	errForged = &failure{fasthttp.StatusForbidden, "This form has expired",
		"You may have signed in again since, or opened it under another address. Nothing was changed. Please go back, " +
			"reload the page and try again."}
	errSuspended = &failure{fasthttp.StatusForbidden, "Your account is suspended",
		"Its short links no longer work, and nobody can manage them. Please contact the operator of this service."}
	errTooFast = &failure{fasthttp.StatusTooManyRequests, "Too many requests",
		"Your account sends more requests than a person would. Please try again in a few seconds."}
	errBusy = &failure{fasthttp.StatusServiceUnavailable, "The service is busy",
		"Too many people who are not signed in are asking at once. Please try again in a few seconds."}
)

func asError(err error) (*schema.Error, bool) {
	var e *schema.Error
	return e, errors.As(err, &e)
}

// clientMessage returns err's message for clients if err has the code and such a message, otherwise "".
func clientMessage(err error, code schema.Code) string {
	if e, ok := asError(err); ok && e.Code == code {
		return e.Message
	}
	return ""
}

// fail answers with the page for an error. It logs errors that the client did not cause and does not show them.
func (d *Dashboard) fail(c *call, err error) {
	page := d.explain(c, err)
	if page.Status == fasthttp.StatusTooManyRequests || page.Status == fasthttp.StatusServiceUnavailable {
		c.http.Response.Header.Set(fasthttp.HeaderRetryAfter, "5")
	}
	if err := d.write(c, page.Status, "failure", page, nil); err != nil {
		d.Log.Error("page not written", "page", "failure", "error", err)
		c.http.Response.ResetBody()
		c.http.SetContentType("text/plain; charset=utf-8")
		c.http.SetStatusCode(fasthttp.StatusInternalServerError)
		c.http.SetBodyString("Something went wrong.\n")
	}
}

// explain returns the page for an error.
func (d *Dashboard) explain(c *call, err error) *failure {
	var page *failure
	if errors.As(err, &page) {
		return page
	}
	var unread *request.Refusal
	if errors.As(err, &unread) {
		return &failure{unread.Status, "This request was refused", unread.Message}
	}
	if page, is := busy(err); is {
		return page
	}
	code := schema.ErrorCode(err)
	switch code {
	case schema.CodeNotFound:
		return errNoPage
	case schema.CodeBusy:
		return &failure{fasthttp.StatusServiceUnavailable, "Your account is busy", clientMessage(err, code)}
	}
	method, path := string(c.http.Method()), service.RedactPath(string(c.http.URI().PathOriginal()))
	d.Log.Error("request failed", "request_id", request.ID(c.http), "method", method, "path", path, "error", err)
	if code == schema.CodeUnavailable {
		store := "link store"
		var of *storeError
		if errors.As(err, &of) {
			store = of.store
		}
		return &failure{fasthttp.StatusServiceUnavailable, "The " + store + " cannot be reached",
			"Short links still work. Please try again in a few seconds."}
	}
	return &failure{fasthttp.StatusInternalServerError, "Something went wrong",
		"The error was logged. Please try again. If it happens again, contact the operator of this service."}
}
