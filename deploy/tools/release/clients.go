package main

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

// description is the document that clients are made from.
const description = "api/rest/openapi.json"

//go:embed clients
var clientFiles embed.FS

// document is the part of an OpenAPI document that clients need.
type document struct {
	Paths      map[string]map[string]json.RawMessage
	Components struct {
		Schemas    map[string]schema
		Parameters map[string]parameter
	}
}

// schema is a JSON Schema.
type schema struct {
	Ref                  string `json:"$ref"`
	Type                 any    // a name, or several
	Description, Format  string
	Enum                 []any
	Const                any
	OneOf                []schema
	Items                *schema
	Properties           map[string]schema
	Required             []string
	AdditionalProperties any
}

type parameter struct {
	Ref      string `json:"$ref"`
	Name, In string
	Required bool
	Schema   schema
}

type content map[string]struct{ Schema schema }

// operation is an operation of the API.
type operation struct {
	ID          string `json:"operationId"`
	Summary     string
	Parameters  []parameter
	RequestBody struct{ Content content }
	Responses   map[string]struct{ Content content }
}

// typed is a value with a name and its type in each language.
type typed struct {
	Name, Python, TypeScript, PythonType string
	Required                             bool
}

// method is an operation as the templates need it.
type method struct {
	ID, Python, Summary, Method, URL, PythonURL string
	Parameters, Path, Query                     []typed
	Body                                        *typed
	Answer                                      typed
	Keyed, Optional                             bool // it takes an Idempotency-Key; it needs no argument
}

// object is a type with fields.
type object struct {
	Name, Description string
	Fields            []typed
}

// buildClients builds the clients of the API for TypeScript and Python from its description.
func (r *release) buildClients(context.Context) error {
	text, err := os.ReadFile(description)
	if err != nil {
		return err
	}
	var doc document
	if err := json.Unmarshal(text, &doc); err != nil {
		return fmt.Errorf("read %s: %w", description, err)
	}
	methods, err := doc.methods()
	if err != nil {
		return err
	}
	input := struct {
		Operations []method
		Types      []object
	}{methods, doc.objects()}
	for _, name := range []string{"index.d.ts", "client.py"} {
		parsed, err := template.ParseFS(clientFiles, "clients/"+name+".tmpl")
		if err != nil {
			return err
		}
		var file bytes.Buffer
		if err := errors.Join(parsed.Execute(&file, input), r.write(name, file.Bytes())); err != nil {
			return err
		}
	}
	calls := map[string][2]string{}
	for _, m := range methods {
		calls[m.ID] = [2]string{m.Method, m.URL}
	}
	table, _ := json.Marshal(calls) // strings can be encoded
	script, err := clientFiles.ReadFile("clients/index.js")
	if err == nil {
		err = r.write("index.js", bytes.Replace(script, []byte("OPERATIONS"), table, 1))
	}
	if err != nil {
		return err
	}
	return errors.Join(r.packTypeScript(), r.packPython())
}

// write writes a file of clients into the folder of programs.
func (r *release) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.dir, name), content, 0o600)
}

// methods returns the operations with an answer, by their names.
func (d *document) methods() (methods []method, err error) {
	for _, name := range slices.Sorted(maps.Keys(d.Paths)) {
		for verb, raw := range d.Paths[name] {
			var o operation
			if err := json.Unmarshal(raw, &o); err != nil {
				return nil, fmt.Errorf("%s %s: %w", verb, name, err)
			}
			methods = append(methods, d.method(strings.ToUpper(verb), name, o))
		}
	}
	slices.SortFunc(methods, func(a, b method) int { return strings.Compare(a.ID, b.ID) })
	return methods, nil
}

func (d *document) method(verb, name string, o operation) method {
	m := method{ID: o.ID, Python: snake(o.ID), Summary: o.Summary, Method: verb, URL: name, Optional: true,
		PythonURL: pathParameter.ReplaceAllString(name, "{urllib.parse.quote(str($1), safe='')}")}
	for _, p := range o.Parameters {
		if p.Ref != "" {
			p = d.Components.Parameters[path.Base(p.Ref)]
		}
		value := d.typed(p.Name, p.Schema)
		value.Required = p.Required
		switch p.In {
		case "header":
			m.Keyed = m.Keyed || p.Name == "Idempotency-Key"
			continue
		case "path":
			m.Path = append(m.Path, value)
		case "query":
			m.Query = append(m.Query, value)
		}
		m.Parameters, m.Optional = append(m.Parameters, value), m.Optional && !p.Required
	}
	if body, found := o.RequestBody.Content["application/json"]; found {
		value := d.typed("body", body.Schema)
		m.Body, m.Optional = &value, false
	}
	m.Answer = typed{TypeScript: "Response", PythonType: "HTTPResponse"} // of a stream or an image
	for status, response := range o.Responses {
		if body, found := response.Content["application/json"]; found && status[0] == '2' {
			m.Answer = d.typed("", body.Schema)
		}
	}
	return m
}

var (
	pathParameter = regexp.MustCompile(`\{(\w+)\}`)
	capitals      = regexp.MustCompile(`([a-z])([A-Z]+)`)
)

func snake(name string) string { return strings.ToLower(capitals.ReplaceAllString(name, "${1}_$2")) }

// typed returns a value with its types. Names that are words of Python get an underscore.
func (d *document) typed(name string, s schema) typed {
	python := name
	if slices.Contains([]string{"from", "if"}, name) {
		python += "_"
	}
	return typed{Name: name, Python: python, TypeScript: d.typeOf(s, typeScript), PythonType: d.typeOf(s, python3)}
}

// objects returns the types with fields.
func (d *document) objects() (types []object) {
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		s := d.Components.Schemas[name]
		if s.Properties == nil {
			continue
		}
		o := object{Name: name, Description: s.Description}
		for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
			value := d.typed(field, s.Properties[field])
			value.Required = slices.Contains(s.Required, field)
			o.Fields = append(o.Fields, value)
		}
		types = append(types, o)
	}
	return types
}

// language says how a language writes types.
type language struct {
	names       map[string]string // of the types of JSON
	list, dict  string            // formats
	literal     string            // format of values that are the only ones
	literalFrom string            // between literals
}

var (
	typeScript = language{map[string]string{"string": "string", "integer": "number", "number": "number",
		"boolean": "boolean", "null": "null", "": "unknown"}, "(%s)[]", "Record<string, %s>", "%s", " | "}
	python3 = language{map[string]string{"string": "str", "integer": "int", "number": "float", "boolean": "bool",
		"null": "None", "": "Any"}, "list[%s]", "dict[str, %s]", "Literal[%s]", ", "}
)

// typeOf returns the type of values that a schema describes. Only objects have names, the others are written out.
func (d *document) typeOf(s schema, l language) string {
	name := ""
	if s.Ref != "" {
		name = path.Base(s.Ref)
		s = d.Components.Schemas[name]
	}
	var alternatives []string
	for _, one := range s.OneOf {
		alternatives = append(alternatives, d.typeOf(one, l))
	}
	values := s.Enum
	if s.Const != nil {
		values = []any{s.Const}
	}
	var kinds []any
	switch kind := s.Type.(type) {
	case string:
		kinds = []any{kind}
	case []any:
		kinds = kind
	}
	for _, kind := range kinds {
		switch kind, _ := kind.(string); {
		case kind == "null":
			alternatives = append(alternatives, l.names[kind])
		case len(values) > 0 && kind != "boolean":
			alternatives = append(alternatives, fmt.Sprintf(l.literal, literals(values, l.literalFrom)))
		case kind == "array":
			alternatives = append(alternatives, fmt.Sprintf(l.list, d.typeOf(*s.Items, l)))
		case kind == "object" && name != "" && s.Properties != nil:
			alternatives = append(alternatives, name)
		case kind == "object":
			alternatives = append(alternatives, fmt.Sprintf(l.dict, d.typeOf(additional(s), l)))
		default:
			alternatives = append(alternatives, l.names[kind])
		}
	}
	if len(alternatives) == 0 {
		return l.names[""]
	}
	return strings.Join(alternatives, " | ")
}

// additional returns the schema of the values of an object whose fields have any names.
func additional(s schema) (values schema) {
	encoded, err := json.Marshal(s.AdditionalProperties)
	if err == nil {
		_ = json.Unmarshal(encoded, &values) // true or false: any value
	}
	return values
}

// literals returns values other than null, which is a type of its own.
func literals(values []any, between string) string {
	var texts []string
	for _, v := range values {
		if v != nil {
			encoded, _ := json.Marshal(v) // it was JSON before
			texts = append(texts, strings.ReplaceAll(string(encoded), `"`, `'`))
		}
	}
	return strings.Join(texts, between)
}

// packTypeScript writes the package for npm.
func (r *release) packTypeScript() error {
	about, _ := json.MarshalIndent(map[string]any{"name": "linkstream", "version": r.version, "type": "module",
		"description": "Client of the API of linkstream", "license": "Apache-2.0",
		"engines": map[string]string{"node": ">=20"},
		"exports": map[string]string{"types": "./index.d.ts", "default": "./index.js"}}, "", "  ")
	if err := r.write("package.json", about); err != nil {
		return err
	}
	members := []member{{"LICENSE", "LICENSE", 0o644}}
	for _, name := range []string{"index.d.ts", "index.js", "package.json"} {
		members = append(members, member{name, filepath.Join(r.dir, name), 0o644})
	}
	return r.pack("linkstream-"+r.version+".tgz", "package", members)
}

// packPython writes the wheel for pip (PEP 427).
func (r *release) packPython() error {
	version := strings.Replace(strings.Replace(r.version, "-rc.", "rc", 1), "-", "+", 1) // PEP 440
	code, err := os.ReadFile(filepath.Join(r.dir, "client.py"))
	if err != nil {
		return err
	}
	license, err := os.ReadFile("LICENSE")
	if err != nil {
		return err
	}
	info := "linkstream-" + version + ".dist-info/"
	var file, record bytes.Buffer
	wheel := zip.NewWriter(&file)
	add := func(name string, content []byte) {
		digest := sha256.Sum256(content)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(digest[:]), len(content))
		entry, failed := wheel.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: r.time})
		if failed == nil {
			_, failed = entry.Write(content)
		}
		err = errors.Join(err, failed)
	}
	add("linkstream/__init__.py", code)
	add("linkstream/py.typed", nil)
	add(info+"LICENSE", license)
	add(info+"METADATA", []byte("Metadata-Version: 2.1\nName: linkstream\nVersion: "+version+
		"\nSummary: Client of the API of linkstream\nLicense: Apache-2.0\nRequires-Python: >=3.11\n"))
	add(info+"WHEEL", []byte("Wheel-Version: 1.0\nGenerator: linkstream\nRoot-Is-Purelib: true\nTag: py3-none-any\n"))
	add(info+"RECORD", []byte(record.String()+info+"RECORD,,\n"))
	if err := errors.Join(err, wheel.Close()); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "linkstream-"+version+"-py3-none-any.whl"), file.Bytes(), 0o644)
}
