package rest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"linkstream/schema/testkit"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
)

// document returns a router of the OpenAPI document.
var document = sync.OnceValues(func() (routers.Router, error) {
	data, err := os.ReadFile("openapi.json")
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(data)
	if err != nil {
		return nil, err
	}
	return legacy.NewRouter(doc)
})

// checkAnswer returns how an answer differs from the document. It ignores paths and methods that the document lacks.
func checkAnswer(ctx context.Context, req *http.Request, a answer) error {
	router, err := document()
	if err != nil {
		return err
	}
	route, params, err := router.FindRoute(req)
	if err != nil || strings.HasSuffix(req.URL.Path, "/") { // this router ignores a trailing slash, the API does not
		return nil
	}
	output := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route},
		Status:                 a.status,
		Header:                 a.header,
		Options:                &openapi3filter.Options{IncludeResponseStatus: true},
	}
	output.SetBodyBytes([]byte(a.raw))
	return openapi3filter.ValidateResponse(ctx, output)
}

func TestOpenAPI(t *testing.T) {
	s := start(t)
	nobody := caller{testService: s}

	t.Run("the document is served without a token", func(t *testing.T) {
		a := nobody.get(t, "/api/v1/openapi.json")
		a.want(t, http.StatusOK)
		data, err := os.ReadFile("openapi.json")
		testkit.Must(t, err)
		if a.raw != string(data) {
			t.Error("the answer differs from the document")
		}
		if a.header.Get("X-RateLimit-Limit") != "" {
			t.Error("it counts against the rate limit")
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
	t.Run("the check of answers finds deviations from the document", func(t *testing.T) {
		owner := s.caller(t, "a@example.org")
		a := owner.get(t, "/api/v1/links")
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+"/api/v1/links", nil)
		testkit.Must(t, err)
		testkit.Must(t, checkAnswer(t.Context(), req, a))
		for what, broken := range map[string]answer{
			"an unknown status": {http.StatusTeapot, a.header, a.raw, a.body},
			"an unknown field":  {a.status, a.header, strings.Replace(a.raw, "{", `{"extra":1,`, 1), a.body},
			"a null list":       {a.status, a.header, strings.Replace(a.raw, "[]", "null", 1), a.body},
			"a missing header":  {a.status, http.Header{"Content-Type": {"application/json"}}, a.raw, a.body},
		} {
			if checkAnswer(t.Context(), req, broken) == nil {
				t.Errorf("%s passes", what)
			}
		}
	})
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
