package rest

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// The text of a body is valid JSON, which encoding/json has found out. So gjson only has to find the parts of it: a
// thousand links are then read in two passes, instead of one per level.

// member is a member of an object. Its value is a part of the text.
type member struct{ name, value string }

// appendMembers appends the members of an object that are fields. Of several with the same name only the last one is
// kept, as encoding/json does. ok is false if the text is no object.
func appendMembers(dst []member, text string) (members []member, ok bool) {
	object := gjson.Parse(text)
	if !object.IsObject() {
		return dst, false
	}
	first := len(dst)
	object.ForEach(func(name, value gjson.Result) bool {
		if isField(name.Str) {
			dst = setMember(dst, first, member{name.Str, value.Raw})
		}
		return true
	})
	return dst, true
}

func setMember(dst []member, first int, m member) []member {
	for i := first; i < len(dst); i++ {
		if dst[i].name == m.name {
			dst[i] = m
			return dst
		}
	}
	return append(dst, m)
}

// appendElements appends the elements of an array, at most one more than limit. ok is false if the text is no array.
func appendElements(dst []string, text string, limit int) (elements []string, ok bool) {
	array := gjson.Parse(text)
	if !array.IsArray() {
		return dst, false
	}
	array.ForEach(func(_, element gjson.Result) bool {
		dst = append(dst, element.Raw)
		return len(dst) <= limit
	})
	return dst, true
}

// plainString returns the value of a string without escapes.
func plainString(value string) (text string, ok bool) {
	if value[0] != '"' || strings.IndexByte(value, '\\') >= 0 || !utf8.ValidString(value) {
		return "", false
	}
	return value[1 : len(value)-1], true
}

// appendString appends a string as encode writes it.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return appendJSON(dst, s)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// appendJSON appends a value as encode writes it, without the end of the line. The value can be encoded.
func appendJSON(dst []byte, value any) []byte {
	text := bytes.NewBuffer(dst)
	if err := encode(text, value); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}
