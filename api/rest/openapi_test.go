package rest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"linkstream/api/rest/resttest"
	"linkstream/schema/testkit"
)

func TestOpenAPI(t *testing.T) {
	s := start(t)
	nobody := caller{testService: s}

	t.Run("the document is served without a token", func(t *testing.T) {
		a := nobody.get(t, "/api/v1/openapi.json")
		testkit.Equal(t, "status", a.status, http.StatusOK)
		testkit.Equal(t, "Cache-Control", a.header.Get("Cache-Control"), "no-cache")
		data, err := os.ReadFile("openapi.json")
		testkit.Must(t, err)
		if a.raw != string(data) {
			t.Error("the answer differs from the document")
		}
		if a.header.Get("X-RateLimit-Limit") != "" {
			t.Error("it counts against the rate limit")
		}
	})
	t.Run("the document is compressed, and sent again only if it has changed", func(t *testing.T) {
		for _, coding := range []string{"", "gzip"} {
			a := resttest.Call(t, http.MethodGet, s.base+"/api/v1/openapi.json", "", "Accept-Encoding", coding)
			testkit.Equal(t, "coding", a.Header.Get("Content-Encoding"), coding)
			testkit.Equal(t, "Vary", a.Header.Get("Vary"), "Accept-Encoding")
			a = resttest.Call(t, http.MethodGet, s.base+"/api/v1/openapi.json", "", "Accept-Encoding", coding, "If-None-Match",
				`"x", `+a.Header.Get("ETag"))
			if a.Status != http.StatusNotModified || a.Raw != "" {
				t.Errorf("status %d with %d bytes", a.Status, len(a.Raw))
			}
		}
	})
	t.Run("the document is valid OpenAPI 3.1, its examples included", func(t *testing.T) {
		doc, err := openapi3.NewLoader().LoadFromData([]byte(nobody.get(t, "/api/v1/openapi.json").raw))
		testkit.Must(t, err)
		testkit.Must(t, doc.Validate(t.Context(), openapi3.EnableExamplesValidation()))
		if !strings.HasPrefix(doc.OpenAPI, "3.1.") {
			t.Errorf("version %q", doc.OpenAPI)
		}
	})
	t.Run("every property has a description", func(t *testing.T) {
		var doc any
		testkit.Must(t, json.Unmarshal([]byte(nobody.get(t, "/api/v1/openapi.json").raw), &doc))
		checkDescribed(t, "", doc)
	})
	t.Run("its examples succeed", func(t *testing.T) { checkExamples(t, s.caller(t, "examples@example.org")) })
}

// checkExamples sends the examples of all requests to a service without links: first the examples that make something,
// and the one that restores a deleted link last.
func checkExamples(t *testing.T, owner caller) {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile("openapi.json")
	testkit.Must(t, err)
	const restore = "restoreLink"
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodGet, http.MethodPatch, http.MethodDelete,
		restore} {
		paths := slices.Sorted(maps.Keys(doc.Paths.Map()))
		if method == http.MethodDelete {
			slices.Reverse(paths) // what a link has before the link
		}
		for _, path := range paths {
			method, last := method, method == restore
			if last {
				method = http.MethodPost
			}
			operation := doc.Paths.Value(path).GetOperation(method)
			if operation == nil || operation.OperationID == "resendDelivery" || (operation.OperationID == restore) != last {
				// no delivery has the id of the example
				continue
			}
			target := exampleTarget(t, path, operation)
			if operation.Responses.Value("200") != nil &&
				operation.Responses.Value("200").Value.Content["text/event-stream"] != nil {
				method = http.MethodHead // a stream would not end
			}
			for _, body := range exampleBodies(t, operation) {
				if a := owner.request(t, method, target, body); a.status/100 != 2 {
					t.Errorf("%s %s with %q: %d %s", method, target, body, a.status, a.raw)
				}
			}
		}
	}
}

// exampleTarget returns a path with the example of each parameter.
func exampleTarget(t *testing.T, path string, operation *openapi3.Operation) string {
	t.Helper()
	query := url.Values{}
	for _, p := range operation.Parameters {
		value := fmt.Sprint(p.Value.Example)
		switch {
		case p.Value.Extensions["x-instead-of"] != nil: // of another parameter
		case p.Value.Example == nil:
			t.Errorf("%s: parameter %s has no example", operation.OperationID, p.Value.Name)
		case p.Value.In == "path":
			path = strings.ReplaceAll(path, "{"+p.Value.Name+"}", url.PathEscape(value))
		default:
			query.Set(p.Value.Name, value)
		}
	}
	return path + "?" + query.Encode()
}

// exampleBodies returns the examples of a request's body, or "" if it has none.
func exampleBodies(t *testing.T, operation *openapi3.Operation) (bodies []string) {
	t.Helper()
	if operation.RequestBody == nil {
		return []string{""}
	}
	for _, example := range operation.RequestBody.Value.Content["application/json"].Examples {
		body, err := json.Marshal(example.Value.Value)
		testkit.Must(t, err)
		bodies = append(bodies, string(body))
	}
	if len(bodies) == 0 {
		t.Errorf("%s: the body has no example", operation.OperationID)
	}
	return bodies
}

// checkDescribed requires a description of every property of a schema.
func checkDescribed(t *testing.T, path string, node any) {
	switch node := node.(type) {
	case []any:
		for _, item := range node {
			checkDescribed(t, path, item)
		}
	case map[string]any:
		properties, _ := node["properties"].(map[string]any)
		for name, property := range properties {
			p, ok := property.(map[string]any)
			if ok && p["description"] == nil && p["$ref"] == nil {
				t.Errorf("%s/properties/%s has no description", path, name)
			}
		}
		for name, item := range node {
			checkDescribed(t, path+"/"+name, item)
		}
	}
}
