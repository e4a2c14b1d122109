// Package reference makes a reference of the API for people from its OpenAPI document: operations by subject with
// their fields, limits, errors, and examples in four languages.
package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// document is the part of an OpenAPI 3.1 document that the reference shows.
type document struct {
	Info struct{ Title, Summary, Description string }
	Tags []struct{ Name, Description string }
	// Paths are the operations by path and method.
	Paths      ordered[ordered[operation]]
	Components struct {
		Schemas    ordered[schema]
		Parameters ordered[parameter]
		Responses  ordered[response]
		Headers    ordered[parameter]
	}
}

type operation struct {
	OperationID, Summary, Description string
	Tags                              []string
	Security                          *[]any // nil: a token
	Parameters                        []parameter
	RequestBody                       *struct {
		Description string
		Content     ordered[media]
	}
	Responses ordered[response]
}

// parameter is a parameter or a header.
type parameter struct {
	Ref         string `json:"$ref"`
	Name, In    string
	Description string
	Required    bool
	Schema      schema
	Example     json.RawMessage
}

type response struct {
	Ref         string `json:"$ref"`
	Description string
	Content     ordered[media]
}

type media struct {
	Schema   schema
	Example  json.RawMessage
	Examples ordered[struct {
		Summary string
		Value   json.RawMessage
	}]
}

type schema struct {
	Ref                          string `json:"$ref"`
	Type                         types
	Format, Pattern, Description string
	Properties                   ordered[schema]
	Required                     []string
	Items, AdditionalProperties  *maybe
	Enum, Examples               []json.RawMessage
	Const, Default               json.RawMessage
	Minimum, Maximum             *json.Number
	MinLength, MaxLength         *int
	MinItems, MaxItems           *int
	MinProperties, MaxProperties *int
	UniqueItems                  bool
}

// types are the names of one type or of several.
type types []string

// UnmarshalJSON implements json.Unmarshaler.
func (t *types) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		*t = types{""}
		return json.Unmarshal(data, &(*t)[0])
	}
	return json.Unmarshal(data, (*[]string)(t))
}

// maybe is a schema where false and true may stand, too.
type maybe struct{ schema }

// UnmarshalJSON implements json.Unmarshaler.
func (m *maybe) UnmarshalJSON(data []byte) error {
	if data[0] != '{' {
		return nil
	}
	return json.Unmarshal(data, &m.schema)
}

// ordered is a JSON object whose members keep the order of the text.
type ordered[T any] struct {
	names  []string
	values map[string]T
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *ordered[T]) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return fmt.Errorf("%.20s is not an object: %w", data, err)
	}
	o.values = map[string]T{}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		var value T
		if err := decoder.Decode(&value); err != nil {
			return fmt.Errorf("%v: %w", name, err)
		}
		o.names, o.values[name.(string)] = append(o.names, name.(string)), value // the names of members are strings
	}
	return nil
}

// all yields the members in their order.
func (o ordered[T]) all(yield func(string, T) bool) {
	for _, name := range o.names {
		if !yield(name, o.values[name]) {
			return
		}
	}
}
