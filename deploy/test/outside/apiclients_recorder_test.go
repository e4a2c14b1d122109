//go:build deploy && nightly

package outside_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"linkstream/schema/testkit"
)

// recorder stands between a client and the API. It notes which operations have succeeded. The tests of api/rest compare
// requests and answers with the description.
type recorder struct {
	url string
	doc *openapi3.T

	mu        sync.Mutex
	succeeded map[string]bool // by operationId
}

// record starts a recorder in front of a service.
func record(t *testing.T, s clientService) *recorder {
	t.Helper()
	r := &recorder{succeeded: map[string]bool{}}
	var err error
	r.doc, err = openapi3.NewLoader().LoadFromFile(description)
	testkit.Must(t, err)
	r.doc.Servers = nil
	router, err := legacy.NewRouter(r.doc)
	testkit.Must(t, err)
	api, err := url.Parse(s.api)
	testkit.Must(t, err)
	proxy := &httputil.ReverseProxy{
		Rewrite:        func(p *httputil.ProxyRequest) { p.SetURL(api) },
		ModifyResponse: func(answer *http.Response) error { return r.note(router, answer) },
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

func (r *recorder) note(router routers.Router, answer *http.Response) error {
	route, _, err := router.FindRoute(answer.Request)
	if err == nil && answer.StatusCode < 300 {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.succeeded[route.Operation.OperationID] = true
	}
	return err // makes the answer 502
}

// missing returns the operations of the description that have not succeeded, without those that answer with a stream,
// which generated clients read to its end.
func (r *recorder) missing() (operations []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, path := range r.doc.Paths.Map() {
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
