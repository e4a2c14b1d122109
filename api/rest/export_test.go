package rest

import "encoding/json"

// What reads and writes JSON text.
var (
	IsField      = isField
	AppendString = appendString
	PlainString  = plainString
)

// Members returns the members of an object that have known names.
func Members(object []byte) (map[string]json.RawMessage, bool) {
	members, ok := appendMembers(nil, string(object))
	byName := map[string]json.RawMessage{}
	for _, m := range members {
		byName[m.name] = json.RawMessage(m.value)
	}
	return byName, ok
}

// Elements returns the elements of an array, at most one more than limit.
func Elements(array []byte, limit int) ([]string, bool) {
	return appendElements(nil, string(array), limit)
}
