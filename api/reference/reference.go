package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Reference is the content of the page. Anchors are unique on it.
type Reference struct {
	Title, Summary string
	About          Text
	Subjects       []Subject
	Objects        []Object
	Failures       []Answer // of many operations
	Headers        []Field
}

// Subject is a group of operations.
type Subject struct {
	Name       string
	About      Text
	Operations []Operation
}

// Operation is a method of a path. Its ID is its anchor.
type Operation struct {
	ID, Method, Path, Title string
	About                   Text
	Open                    bool // needs no token
	Parameters              []Field
	Body                    *Object // nil: none
	Answers, Failures       []Answer
	Shared                  []Answer // failures that Reference.Failures explains
	Examples                []Example
}

// Object is a JSON object with its fields, or if it has none a reference to the object whose name it has.
type Object struct {
	Name   string
	About  Text
	Fields []Field
}

// Field is a field of an object, a parameter or a header.
type Field struct {
	Anchor, Name, In string
	Required         bool
	Type             Type
	About            Text
	Limits, Example  Code
	Fields           []Field // of an object that has no name
}

// Type is a type in words. Object is the anchor of an object among them.
type Type struct{ Before, Object, After string }

// Answer is an answer of an operation. Anchor is where a shared answer is explained.
type Answer struct {
	Status, Anchor string
	About          Text
	Types          []Type
	Example        Code
}

// Text is a text with `code`. It stands between elements, never in an attribute.
type Text string

// escape escapes text between elements, where quotes need none.
var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// Code is a text that stands between elements as it is.
type Code string

// HTML returns the code with characters that have a meaning in HTML escaped.
func (c Code) HTML() template.HTML { return template.HTML(escape.Replace(string(c))) }

// HTML returns the text with elements for its code.
func (t Text) HTML() template.HTML {
	var out strings.Builder
	for i, part := range strings.Split(string(t), "`") {
		if part = escape.Replace(part); i%2 == 1 {
			part = "<code>" + part + "</code>"
		}
		out.WriteString(part)
	}
	return template.HTML(out.String())
}

// New returns the reference of an OpenAPI document. Its examples call the API at a base URL.
func New(text []byte, base string) (*Reference, error) {
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	r := &Reference{Title: d.Info.Title, Summary: d.Info.Summary, About: Text(d.Info.Description)}
	bodies := map[string]bool{} // objects that an operation explains
	for _, tag := range d.Tags {
		subject := Subject{Name: tag.Name, About: Text(tag.Description)}
		for path, methods := range d.Paths.all {
			for method, o := range methods.all {
				if !slices.Contains(o.Tags, tag.Name) {
					continue
				}
				operation, err := d.operation(method, path, o, base, bodies)
				if err != nil {
					return nil, fmt.Errorf("operation %q: %w", o.OperationID, err)
				}
				subject.Operations = append(subject.Operations, operation)
			}
		}
		r.Subjects = append(r.Subjects, subject)
	}
	for name, s := range d.Components.Schemas.all {
		if len(s.Properties.names) > 0 && !bodies[name] {
			r.Objects = append(r.Objects, Object{name, Text(s.Description), d.fields(name, s)})
		}
	}
	for name, shared := range d.Components.Responses.all {
		a := d.answer(d.statusOf(name), shared)
		a.Anchor = name
		r.Failures = append(r.Failures, a)
	}
	for name, header := range d.Components.Headers.all {
		header.Name = name
		r.Headers = append(r.Headers, d.parameter("header", header))
	}
	return r, nil
}

func (d *document) operation(method, path string, o operation, base string, bodies map[string]bool) (Operation, error) {
	op := Operation{ID: o.OperationID, Method: strings.ToUpper(method), Path: path, Title: o.Summary,
		About: Text(o.Description), Open: o.Security != nil && len(*o.Security) == 0}
	for i, p := range o.Parameters {
		if p.Ref != "" {
			p = d.Components.Parameters.values[nameOf(p.Ref)]
			o.Parameters[i] = p
		}
		op.Parameters = append(op.Parameters, d.parameter(op.ID, p))
	}
	if o.RequestBody != nil {
		for _, content := range o.RequestBody.Content.all {
			name := nameOf(content.Schema.Ref)
			op.Body = &Object{Name: name, About: Text(o.RequestBody.Description)}
			if !bodies[name] {
				op.Body.Fields = d.fields(name, d.Components.Schemas.values[name])
			}
			bodies[name] = true
		}
	}
	for status, answer := range o.Responses.all {
		switch a := d.answer(status, answer); {
		case answer.Ref != "":
			op.Shared = append(op.Shared, a)
		case status < "400":
			op.Answers = append(op.Answers, a)
		default:
			op.Failures = append(op.Failures, a)
		}
	}
	var err error
	op.Examples, err = o.examples(op, base)
	return op, err
}

func (d *document) parameter(of string, p parameter) Field {
	f := d.field(of, p.Name, p.Schema)
	f.In, f.Required, f.Example = p.In, p.Required, Code(plain(p.Example))
	if p.Description != "" {
		f.About = Text(p.Description)
	}
	return f
}

func (d *document) answer(status string, r response) Answer {
	a := Answer{Status: status}
	if r.Ref != "" {
		a.Anchor = nameOf(r.Ref)
		return a
	}
	a.About = Text(r.Description)
	for kind, content := range r.Content.all {
		t := d.typeOf(content.Schema)
		if t.Object == "" {
			t = Type{Before: kind}
		}
		a.Types = append(a.Types, t)
		example := content.Example
		for _, e := range content.Examples.all {
			if example == nil {
				example = e.Value
			}
		}
		if example != nil {
			a.Example = Code(indented(example))
		}
	}
	return a
}

// statusOf returns the status with which the operations use a shared response.
func (d *document) statusOf(name string) string {
	for _, methods := range d.Paths.all {
		for _, o := range methods.all {
			for status, r := range o.Responses.all {
				if nameOf(r.Ref) == name {
					return status
				}
			}
		}
	}
	return ""
}

// fields returns the fields of an object.
func (d *document) fields(of string, s schema) (fields []Field) {
	for name, property := range s.Properties.all {
		f := d.field(of, name, property)
		f.Required = slices.Contains(s.Required, name)
		fields = append(fields, f)
	}
	return fields
}

func (d *document) field(of, name string, s schema) Field {
	f := Field{Anchor: of + "." + name, Name: name, Type: d.typeOf(s)}
	about := s.Description
	if s.Ref != "" {
		if s = d.Components.Schemas.values[nameOf(s.Ref)]; about == "" {
			about = s.Description
		}
	}
	f.About = Text(about)
	limits := s.limits()
	for s.Items != nil { // of an array, the limits of its elements count, too
		if s = s.Items.schema; s.Ref != "" {
			s = d.Components.Schemas.values[nameOf(s.Ref)]
		}
		for _, limit := range s.limits() {
			limits = append(limits, "each "+limit)
		}
	}
	if text := strings.Join(limits, "; "); text != "" {
		f.Limits = Code(strings.ToUpper(text[:1]) + text[1:]) // it begins with a letter or a digit
	}
	if len(s.Examples) > 0 {
		f.Example = Code(plain(s.Examples[0]))
	}
	if f.Type.Object == "" {
		f.Fields = d.fields(f.Anchor, s)
	}
	return f
}

// typeOf returns the type of a schema. Objects with a name are anchors; other schemas with a name are what they are.
func (d *document) typeOf(s schema) Type {
	name := nameOf(s.Ref)
	if name != "" {
		s = d.Components.Schemas.values[name]
	}
	names := slices.DeleteFunc(slices.Clone(s.Type), func(name string) bool { return name == "null" })
	t := Type{Before: strings.Join(names, " or ")}
	switch {
	case name != "" && len(s.Properties.names) > 0:
		t = Type{Object: name}
	case s.Items != nil:
		t = d.typeOf(s.Items.schema)
		t.Before = "array of " + t.Before
	case s.AdditionalProperties != nil && len(s.AdditionalProperties.Type) > 0:
		t = d.typeOf(s.AdditionalProperties.schema)
		t.Before = "object of " + t.Before
	}
	if len(names) < len(s.Type) {
		t.After += " or null"
	}
	return t
}

// nameOf returns the name at the end of a reference, "" without one.
func nameOf(ref string) string {
	if ref == "" {
		return ""
	}
	return path.Base(ref)
}

// limits returns the constraints of values, in words.
func (s schema) limits() (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	between := func(least, most *int, unit string) {
		switch {
		case least != nil && most != nil && *least == *most:
			say("%d %s", *least, unit)
		case least != nil && most != nil:
			say("%d to %d %s", *least, *most, unit)
		case least != nil && *least == 1:
			say("at least one %s", strings.TrimSuffix(unit, "s"))
		case least != nil:
			say("at least %d %s", *least, unit)
		case most != nil:
			say("at most %d %s", *most, unit)
		}
	}
	between(s.MinLength, s.MaxLength, "characters")
	between(s.MinItems, s.MaxItems, "elements")
	between(s.MinProperties, s.MaxProperties, "fields")
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		say("%s to %s", *s.Minimum, *s.Maximum)
	case s.Minimum != nil:
		say("at least %s", *s.Minimum)
	case s.Maximum != nil:
		say("at most %s", *s.Maximum)
	}
	if s.UniqueItems {
		say("all different")
	}
	if s.Pattern != "" {
		say("matches %s", s.Pattern)
	}
	if s.Format != "" && s.Format != "int64" {
		say("%s", s.Format)
	}
	if len(s.Enum) > 0 {
		var values []string
		for _, value := range s.Enum {
			values = append(values, plain(value))
		}
		say("one of %s", strings.Join(values, ", "))
	}
	if s.Const != nil {
		say("always %s", plain(s.Const))
	}
	if s.Default != nil {
		say("%s by default", plain(s.Default))
	}
	return all
}

// plain returns a JSON value on one line, a string without its quotes.
func plain(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) == nil && !bytes.Equal(value, []byte("null")) {
		return s
	}
	var out bytes.Buffer
	_ = json.Compact(&out, value) // the document has been parsed, or there is no value
	return out.String()
}

// lineLength is the number of characters up to which a value stands on one line.
const lineLength = 76

// indented returns a JSON value as people write it. A string is a text of another kind.
func indented(value json.RawMessage) string {
	if value[0] == '"' {
		return plain(value)
	}
	return pretty(value, "")
}

// pretty returns a JSON value whose further lines begin with by. Arrays and objects that are short are one line.
func pretty(value json.RawMessage, by string) string {
	var members []string
	value = bytes.TrimSpace(value)
	open, end := string(value[:1]), string(value[len(value)-1:])
	switch open { // no error: the document has been parsed
	case "{":
		var object ordered[json.RawMessage]
		_ = json.Unmarshal(value, &object)
		for name, member := range object.all {
			members = append(members, strconv.Quote(name)+": "+pretty(member, by+"  "))
		}
	case "[":
		var array []json.RawMessage
		_ = json.Unmarshal(value, &array)
		for _, member := range array {
			members = append(members, pretty(member, by+"  "))
		}
	default:
		return string(value)
	}
	line := open + strings.Join(members, ", ") + end
	if len(line)+len(by) <= lineLength && !strings.Contains(line, "\n") {
		return line
	}
	next := "\n" + by + "  "
	return open + next + strings.Join(members, ","+next) + "\n" + by + end
}
