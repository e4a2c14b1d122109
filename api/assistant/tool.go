package assistant

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// document is the part of an OpenAPI document that describes arguments.
type document struct {
	Paths map[string]map[string]struct {
		Parameters  []any
		RequestBody struct {
			Content map[string]struct{ Schema any }
		}
	}
	Components map[string]map[string]any
}

// tool is a tool as it is declared, and the operations that it calls.
type tool struct {
	definition
	declared   *mcp.Tool
	operations []operation
	lists      []string // the lists of a report
}

// operation is an operation of the API. places says for each of its arguments where it stands in a request: in the
// path, the query or the body.
type operation struct {
	endpoint
	places map[string]string
}

const (
	inPath  = "path"
	inQuery = "query"
	inBody  = "body"
)

// tool returns the tool of a definition.
func (d document) tool(def definition) (t tool, err error) {
	t = tool{definition: def}
	properties, required := map[string]any{}, append([]string{}, def.required...)
	for _, at := range def.calls {
		op, found := d.Paths[at.path][strings.ToLower(at.method)]
		if !found {
			return t, fmt.Errorf("the document has no %s %s", at.method, at.path)
		}
		made := operation{at, map[string]string{}}
		for _, p := range op.Parameters {
			p := d.inline(p).(map[string]any)
			name, in := p["name"].(string), p["in"].(string)
			if in != inPath && in != inQuery {
				continue
			}
			made.places[name] = in
			property := p["schema"].(map[string]any)
			property["description"] = p["description"]
			properties[name] = property
			if in == inPath && len(def.calls) == 1 {
				required = append(required, name)
			}
		}
		body, _ := d.inline(op.RequestBody.Content["application/json"].Schema).(map[string]any)
		fields, _ := body["properties"].(map[string]any)
		for name, field := range fields {
			made.places[name] = inBody
			properties[name] = field
		}
		for _, name := range asList(body["required"]) {
			required = append(required, name.(string))
		}
		t.operations = append(t.operations, made)
	}
	for _, name := range def.without {
		delete(properties, name)
		required = slices.DeleteFunc(required, func(r string) bool { return r == name })
	}
	maps.Copy(properties, def.with)
	if def.name == "report" {
		t.lists = d.lists("AccountReport")
		properties[argList] = map[string]any{"type": "string", "enum": t.lists, "description": "The list to answer."}
	}
	t.declared = &mcp.Tool{Name: def.name, Title: def.title, Description: def.about, Annotations: &def.kind,
		InputSchema: map[string]any{"type": "object", "properties": properties, "required": required,
			"additionalProperties": false}}
	return t, nil
}

// inline returns a part of the document without references and examples.
func (d document) inline(part any) any {
	switch part := part.(type) {
	case []any:
		out := make([]any, len(part))
		for i := range part {
			out[i] = d.inline(part[i])
		}
		return out
	case map[string]any:
		out := map[string]any{}
		if ref, ok := part["$ref"].(string); ok { // such as #/components/schemas/Tag
			path := strings.Split(ref, "/")
			maps.Copy(out, d.inline(d.Components[path[2]][path[3]]).(map[string]any))
		}
		for name, value := range part {
			if name != "$ref" && name != "example" && name != "examples" {
				out[name] = d.inline(value)
			}
		}
		return out
	}
	return part
}

// lists returns the names of the arrays of a schema.
func (d document) lists(schema string) (names []string) {
	object := d.inline(d.Components["schemas"][schema]).(map[string]any)
	for name, property := range object["properties"].(map[string]any) {
		if is := property.(map[string]any)["type"]; is == "array" || slices.Contains(asList(is), any("array")) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func asList(value any) []any {
	list, _ := value.([]any)
	return list
}

// allowed reports whether a caller may make all requests of the tool.
func (t tool) allowed(may func(method, path string) bool) bool {
	return !slices.ContainsFunc(t.operations, func(o operation) bool { return !may(o.method, o.path) })
}

// takes reports whether the tool has an argument.
func (t tool) takes(name string) bool {
	_, has := t.declared.InputSchema.(map[string]any)["properties"].(map[string]any)[name]
	return has
}

// arguments are the arguments of a call, as JSON.
type arguments map[string]json.RawMessage

// text returns an argument as it stands in a path or a query, "" if it is null or missing.
func (a arguments) text(name string) string {
	var text string
	if raw := a[name]; json.Unmarshal(raw, &text) != nil { // no string
		return string(raw)
	}
	return text
}

// request returns the request of the operation with arguments.
func (o operation) request(args arguments) Request {
	path, query, body := o.path, url.Values{}, arguments{}
	for name, in := range o.places {
		raw := args[name]
		given := len(raw) > 0
		switch {
		case in == inPath:
			path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(args.text(name)))
		case in == inBody && given:
			body[name] = raw
		case in == inQuery && given && string(raw) != "null":
			query.Set(name, args.text(name))
		}
	}
	req := Request{Method: o.method, Target: path}
	if len(query) > 0 {
		req.Target += "?" + query.Encode()
	}
	if o.method == "POST" || o.method == "PATCH" {
		req.Body, _ = json.Marshal(body) // JSON can be encoded
	}
	return req
}
