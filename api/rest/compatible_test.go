package rest_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"linkstream/schema/testkit"
)

// frozen is the description of version 1 that clients rely on, without its prose. The present description must be
// compatible with it: requests that were accepted are accepted, and answers keep their fields.
const frozen = "testdata/openapi-v1.json"

var freeze = flag.Bool("freeze", false, "write the description, if it is compatible, to "+frozen)

func TestVersion1StaysCompatible(t *testing.T) {
	before, now := readDescription(t, frozen), readDescription(t, "openapi.json")
	for _, v := range incompatible(before, now) {
		t.Error(v)
	}
	data, err := json.MarshalIndent(withoutProse(readDescription(t, "openapi.json"), false), "", " ")
	testkit.Must(t, err)
	present := string(data) + "\n"
	switch {
	case t.Failed():
	case *freeze:
		testkit.Must(t, os.WriteFile(frozen, []byte(present), 0o600))
	case isRelease(t):
		text, err := os.ReadFile(frozen)
		testkit.Must(t, err)
		if string(text) != present {
			t.Error("the release answers what is not frozen: run go test ./api/rest -run TestVersion1 -freeze")
		}
	default:
		for operation := range now.operations() {
			if before.operations()[operation] == nil {
				t.Errorf("%s is not frozen: run go test ./api/rest -run TestVersion1 -freeze", operation)
			}
		}
	}
}

// isRelease reports whether the changelog has no section of unreleased changes.
func isRelease(t *testing.T) bool {
	t.Helper()
	text, err := os.ReadFile("../../CHANGELOG.md")
	testkit.Must(t, err)
	return !strings.Contains(string(text), "\n## Unreleased\n")
}

// object is a JSON object. Its methods return the zero value where something is missing.
type object map[string]any

func readDescription(t *testing.T, path string) (o object) {
	t.Helper()
	data, err := os.ReadFile(path)
	testkit.Must(t, err)
	testkit.Must(t, json.Unmarshal(data, &o))
	return o
}

func (o object) object(names ...string) object {
	for _, name := range names {
		next, _ := o[name].(map[string]any)
		o = next
	}
	return o
}

func (o object) objects(name string) (all []object) {
	list, _ := o[name].([]any)
	for _, item := range list {
		if item, ok := item.(map[string]any); ok {
			all = append(all, item)
		}
	}
	return all
}

// strings returns a list of values, or a single one, as text.
func (o object) strings(name string) (all []string) {
	list, ok := o[name].([]any)
	if !ok && o[name] != nil {
		list = []any{o[name]}
	}
	for _, item := range list {
		all = append(all, fmt.Sprint(item))
	}
	return all
}

// operations returns the operations by method and path.
func (o object) operations() map[string]object {
	all := map[string]object{}
	for path, item := range o.object("paths") {
		for method, operation := range item.(map[string]any) {
			all[strings.ToUpper(method)+" "+path] = operation.(map[string]any)
		}
	}
	return all
}

// follow returns the object of a reference.
func (o object) follow(document object) object {
	if ref, ok := o["$ref"].(string); ok {
		return document.object(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	return o
}

// withoutProse leaves out the texts for people. Properties may have any name.
func withoutProse(node any, names bool) any {
	switch node := node.(type) {
	case object:
		return withoutProse(map[string]any(node), names)
	case []any:
		for i := range node {
			node[i] = withoutProse(node[i], false)
		}
	case map[string]any:
		for name, item := range node {
			prose := []string{"description", "summary", "example", "examples", "title", "tags", "contact", "servers", "links"}
			if !names && slices.Contains(prose, name) {
				delete(node, name)
				continue
			}
			node[name] = withoutProse(item, name == "properties" || name == "schemas")
		}
	}
	return node
}

// comparison collects the differences that break clients.
type comparison struct {
	before, now object
	violations  []string
	path        []string
	parameters  map[string]bool // new query parameters of the operation
}

func incompatible(before, now object) []string {
	c := &comparison{before: before, now: now}
	for name, was := range before.operations() {
		is := now.operations()[name]
		if is == nil {
			c.violations = append(c.violations, name+" is gone")
			continue
		}
		c.within(name, func() { c.operation(was, is) })
	}
	slices.Sort(c.violations)
	return c.violations
}

func (c *comparison) within(name string, compare func()) {
	c.path = append(c.path, name)
	compare()
	c.path = c.path[:len(c.path)-1]
}

func (c *comparison) breaks(format string, args ...any) {
	c.violations = append(c.violations, strings.Join(c.path, ", ")+": "+fmt.Sprintf(format, args...))
}

func (c *comparison) operation(was, is object) {
	if was["operationId"] != is["operationId"] {
		c.breaks("operationId %v is now %v", was["operationId"], is["operationId"])
	}
	if fmt.Sprint(was["security"]) != fmt.Sprint(is["security"]) {
		c.breaks("security %v is now %v", was["security"], is["security"])
	}
	parameters := map[string]object{}
	for _, p := range is.objects("parameters") {
		p = p.follow(c.now)
		parameters[fmt.Sprint(p["in"], " ", p["name"])] = p
	}
	for _, p := range was.objects("parameters") {
		p = p.follow(c.before)
		name := fmt.Sprint(p["in"], " ", p["name"])
		c.within(name, func() {
			if parameters[name] == nil {
				c.breaks("is gone")
				return
			}
			if parameters[name]["required"] == true && p["required"] != true {
				c.breaks("is now required")
			}
			c.accepts(p.object("schema"), parameters[name].object("schema"))
		})
		delete(parameters, name)
	}
	c.parameters = map[string]bool{}
	for name, p := range parameters {
		if p["required"] == true {
			c.breaks("%s is new and required", name)
		}
		c.parameters[name] = true
	}
	c.within("body", func() {
		if was["requestBody"] == nil && is.object("requestBody")["required"] == true {
			c.breaks("is new and required")
		}
		c.accepts(was.object("requestBody", "content", "application/json", "schema"),
			is.object("requestBody", "content", "application/json", "schema"))
	})
	c.responses(was.object("responses"), is.object("responses"))
}

func (c *comparison) responses(was, is object) {
	for status := range was {
		c.within(status, func() {
			if is[status] == nil {
				c.breaks("is gone")
				return
			}
			before, now := was.object(status).follow(c.before), is.object(status).follow(c.now)
			for name := range before.object("headers") {
				if now.object("headers")[name] == nil {
					c.breaks("header %s is gone", name)
				}
			}
			c.answers(before.object("content", "application/json", "schema"),
				now.object("content", "application/json", "schema"))
		})
	}
}

// accepts compares the schemas of requests.
func (c *comparison) accepts(was, is object) {
	was, is = was.follow(c.before), is.follow(c.now)
	for _, kind := range was.strings("type") {
		if !slices.Contains(is.strings("type"), kind) {
			c.breaks("type %s is not accepted any more", kind)
		}
	}
	if is["enum"] != nil {
		for _, value := range was.strings("enum") {
			if !slices.Contains(is.strings("enum"), value) {
				c.breaks("value %s is not accepted any more", value)
			}
		}
		if was["enum"] == nil {
			c.breaks("only some values are accepted now")
		}
	}
	for _, limit := range []string{"minLength", "minimum", "minItems", "minProperties"} {
		if n, ok := is[limit].(float64); ok && (was[limit] == nil || n > was[limit].(float64)) {
			c.breaks("%s %v is now %v", limit, was[limit], n)
		}
	}
	for _, limit := range []string{"maxLength", "maximum", "maxItems", "maxProperties"} {
		if n, ok := is[limit].(float64); ok && (was[limit] == nil || n < was[limit].(float64)) {
			c.breaks("%s %v is now %v", limit, was[limit], n)
		}
	}
	if is["pattern"] != nil && is["pattern"] != was["pattern"] {
		c.breaks("pattern %v is now %v", was["pattern"], is["pattern"])
	}
	for _, name := range is.strings("required") {
		if !slices.Contains(was.strings("required"), name) {
			c.breaks("%s is now required", name)
		}
	}
	c.properties(was, is, c.accepts)
}

// answers compares the schemas of answers.
func (c *comparison) answers(was, is object) {
	was, is = was.follow(c.before), is.follow(c.now)
	for _, kind := range is.strings("type") {
		if len(was.strings("type")) > 0 && !slices.Contains(was.strings("type"), kind) {
			c.breaks("type %s is new", kind)
		}
	}
	if len(was.strings("type")) > 0 && len(is.strings("type")) == 0 {
		c.breaks("any type may be answered now")
	}
	if was["format"] != is["format"] {
		c.breaks("format %v is now %v", was["format"], is["format"])
	}
	if was["enum"] != nil {
		for _, value := range is.strings("enum") {
			// Tokens of version 1 have no scopes, so clients of the frozen description never get answers about scopes.
			if !slices.Contains(was.strings("enum"), value) && !slices.Contains(is.strings("x-only-with-scopes"), value) {
				c.breaks("value %s is new", value)
			}
		}
		if is["enum"] == nil {
			c.breaks("any value may be answered now")
		}
	}
	for _, name := range was.strings("required") {
		if !slices.Contains(is.strings("required"), name) && !c.parameter(is, name, "x-missing-with") {
			c.breaks("%s may be missing now", name)
		}
	}
	if was["additionalProperties"] == false {
		for name := range is.object("properties") {
			if was.object("properties")[name] == nil && !c.askedFor(is, name) {
				c.breaks("%s is new, where no further properties were promised", name)
			}
		}
		if is["additionalProperties"] != false {
			c.breaks("further properties may be answered now")
		}
	}
	if before, now := was.objects("oneOf"), is.objects("oneOf"); len(before) != len(now) {
		c.breaks("%d alternatives are now %d", len(before), len(now))
	} else {
		for i := range before {
			c.within(fmt.Sprint("alternative ", i+1), func() { c.answers(before[i], now[i]) })
		}
	}
	c.properties(was, is, c.answers)
}

// askedFor reports whether a new property is in answers to a new query parameter only, which no client of the frozen
// description sends, or in reports with imported clicks, which no such client imports. It must be optional, and
// x-only-with names the parameter. Alternative schemas would say the same,
// but change the types of generated clients.
func (c *comparison) askedFor(is object, name string) bool {
	asked := c.parameter(is, name, "x-only-with") || is.object("properties", name)["x-only-with-imports"] == true
	return asked && !slices.Contains(is.strings("required"), name)
}

// parameter reports whether a property names a new query parameter, as the condition under which it is in answers, or
// missing in them.
func (c *comparison) parameter(is object, name, condition string) bool {
	return c.parameters[fmt.Sprint("query ", is.object("properties", name)[condition])]
}

// properties compares the parts of objects and arrays.
func (c *comparison) properties(was, is object, compare func(was, is object)) {
	for name := range was.object("properties") {
		c.within(name, func() {
			if is.object("properties")[name] == nil {
				c.breaks("is gone")
				return
			}
			compare(was.object("properties", name), is.object("properties", name))
		})
	}
	for _, part := range []string{"items", "additionalProperties"} {
		if was.object(part) != nil {
			c.within(part, func() { compare(was.object(part), is.object(part)) })
		}
	}
}
