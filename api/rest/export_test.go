package rest

import "encoding/json"

// What reads and writes JSON text.
var (
	KnownField   = knownField
	AppendString = appendString
	PlainString  = plainString
)

// Members returns the members of an object that have known names.
func Members(object []byte) (map[string]json.RawMessage, bool) {
	members, ok := appendMembers(nil, object, knownField)
	byName := map[string]json.RawMessage{}
	for _, m := range members {
		byName[m.name] = m.value
	}
	return byName, ok
}

// Elements returns the elements of an array, at most one more than limit.
func Elements(array []byte, limit int) ([][]byte, bool) { return appendElements(nil, array, limit) }
