package rest_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// description is the OpenAPI document. Its schemas are JSON Schema 2020-12, and each schema is compiled once:
// openapi3filter compiles them for every answer.
type description struct {
	router routers.Router

	mu       sync.Mutex
	compiler *jsonschema.Compiler
}

const documentURL = "file:///openapi.json" // which is not read from there

// document returns the description.
var document = sync.OnceValues(func() (*description, error) {
	data, err := os.ReadFile("openapi.json")
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(data)
	if err != nil {
		return nil, err
	}
	doc.Servers = nil // the tests' servers have other addresses
	d := &description{compiler: jsonschema.NewCompiler()}
	if d.router, err = legacy.NewRouter(doc); err != nil {
		return nil, err
	}
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	d.compiler.AssertFormat()
	d.compiler.RegisterFormat(&jsonschema.Format{Name: "int64", Validate: func(v any) error {
		if n, ok := v.(json.Number); ok {
			_, err := n.Int64()
			return err
		}
		return nil
	}})
	schemas, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return d, d.compiler.AddResource(documentURL, schemas)
})

// validate returns how a value differs from the schema at a JSON pointer, such as #/components/schemas/Link. Numbers
// are json.Number.
func (d *description) validate(at string, value any) error {
	d.mu.Lock()
	schema, err := d.compiler.Compile(documentURL + at) // the compiler keeps it
	d.mu.Unlock()
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// checkAnswer returns how an answer differs from the document. It ignores paths and methods that the document lacks.
func checkAnswer(req *http.Request, a answer) error {
	d, err := document()
	if err != nil {
		return err
	}
	route, params, err := d.router.FindRoute(req)
	// This router ignores trailing slashes, or the lack of one before an empty parameter. The API ignores one.
	if hash, given := params["hash"]; err != nil || strings.HasSuffix(req.URL.Path, "//") || given && hash == "" {
		return nil
	}
	status := strconv.Itoa(a.status)
	response := route.Operation.Responses.Value(status)
	if response == nil {
		return errors.New("this status is not documented")
	}
	at := cmp.Or(response.Ref, "#/paths/"+token(route.Path)+"/"+strings.ToLower(req.Method)+"/responses/"+status)
	for name, header := range response.Value.Headers {
		if err := d.checkHeader(cmp.Or(header.Ref, at+"/headers/"+token(name)), header.Value,
			a.header.Values(name)); err != nil {
			return fmt.Errorf("header %s: %w", name, err)
		}
	}
	if len(response.Value.Content) == 0 && a.raw == "" {
		return nil
	}
	contentType, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	if response.Value.Content[contentType] == nil {
		return fmt.Errorf("content type %q is not documented", contentType)
	}
	if contentType != "application/json" { // an image
		return nil
	}
	body, err := jsonschema.UnmarshalJSON(strings.NewReader(a.raw))
	if err != nil {
		return err
	}
	return d.validate(at+"/content/"+token(contentType)+"/schema", body)
}

func (d *description) checkHeader(at string, header *openapi3.Header, values []string) error {
	if len(values) == 0 && !header.Required {
		return nil
	}
	if len(values) != 1 {
		return fmt.Errorf("%d values", len(values))
	}
	var value any = values[0]
	if header.Schema.Value.Type.Is(openapi3.TypeInteger) {
		if _, err := strconv.ParseInt(values[0], 10, 64); err != nil {
			return err
		}
		value = json.Number(values[0])
	}
	return d.validate(at+"/schema", value)
}

// token escapes a name as a part of a JSON pointer.
func token(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
