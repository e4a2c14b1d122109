//go:build deploy && nightly

package outside_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"linkstream/schema/testkit"
)

// recorder stands between a client and the API. It checks requests and answers against the description, and notes which
// operations have succeeded.
type recorder struct {
	url    string
	router routers.Router

	mu        sync.Mutex
	succeeded map[string]bool // by operationId
}

// record starts a recorder in front of a service.
func record(t *testing.T, s clientService) *recorder {
	t.Helper()
	r := &recorder{router: router(t, describe(t)), succeeded: map[string]bool{}}
	api, err := url.Parse(s.api)
	testkit.Must(t, err)
	proxy := httputil.NewSingleHostReverseProxy(api)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.check(t, w, req, proxy)
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// describe returns the description, without the server that its paths belong to.
func describe(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile(description)
	testkit.Must(t, err)
	doc.Servers = nil
	return doc
}

func router(t *testing.T, doc *openapi3.T) routers.Router {
	t.Helper()
	router, err := legacy.NewRouter(doc)
	testkit.Must(t, err)
	return router
}

// check answers a request with what the API answers.
func (r *recorder) check(t *testing.T, w http.ResponseWriter, req *http.Request, api http.Handler) {
	route, params, err := r.router.FindRoute(req)
	if err != nil {
		t.Errorf("%s %s: %v", req.Method, req.URL, err)
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		t.Error(err)
	}
	input := &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: hasAuthorization}}
	req.Body = io.NopCloser(bytes.NewReader(body))
	if err := openapi3filter.ValidateRequest(req.Context(), input); err != nil {
		t.Errorf("%s %s: the request is not as described: %v", req.Method, req.URL, err)
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	api.ServeHTTP(answer, req)

	output := &openapi3filter.ResponseValidationInput{RequestValidationInput: input, Status: answer.Code,
		Header:  answer.Header(),
		Options: &openapi3filter.Options{IncludeResponseStatus: true}}
	output.SetBodyBytes(plainBody(t, answer))
	if err := openapi3filter.ValidateResponse(req.Context(), output); err != nil {
		t.Errorf("%s %s: the answer is not as described: %v", req.Method, req.URL, err)
	}
	if answer.Code < 300 {
		r.mu.Lock()
		r.succeeded[route.Operation.OperationID] = true
		r.mu.Unlock()
	}
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// plainBody returns the body of an answer without its compression.
func plainBody(t *testing.T, answer *httptest.ResponseRecorder) []byte {
	t.Helper()
	if answer.Header().Get("Content-Encoding") != "gzip" {
		return answer.Body.Bytes()
	}
	plain, err := gzip.NewReader(bytes.NewReader(answer.Body.Bytes()))
	testkit.Must(t, err)
	body, err := io.ReadAll(plain)
	testkit.Must(t, err)
	return body
}

func hasAuthorization(_ context.Context, input *openapi3filter.AuthenticationInput) error {
	if input.RequestValidationInput.Request.Header.Get("Authorization") == "" {
		return input.NewError(nil)
	}
	return nil
}

// missing returns the operations of the description that have not succeeded, without those that answer with a stream,
// which generated clients read to its end.
func (r *recorder) missing(t *testing.T) (operations []string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, path := range describe(t).Paths.Map() {
		for _, operation := range path.Operations() {
			ok := operation.Responses.Value("200")
			streams := ok != nil && ok.Value.Content["text/event-stream"] != nil
			if !streams && !r.succeeded[operation.OperationID] {
				operations = append(operations, operation.OperationID)
			}
		}
	}
	return operations
}
