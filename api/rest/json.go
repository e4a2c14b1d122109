package rest

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// What follows walks through JSON text without decoding it. The text must be valid, which encoding/json has found out: a thousand
// links are then read in one pass, instead of one per level.

// member is a member of an object. Its value is a part of the text.
type member struct {
	name  string
	value []byte
}

// appendMembers appends the members of an object that intern knows by their names in JSON text. Of several with the same name only
// the last one is kept, as encoding/json does. ok is false if the text is no object.
func appendMembers(dst []member, object []byte, intern func(name []byte) string) (members []member, ok bool) {
	i := skipSpace(object, 0)
	if i == len(object) || object[i] != '{' {
		return dst, false
	}
	first := len(dst)
	for i = skipSpace(object, i+1); object[i] != '}'; {
		end := endOfString(object, i)
		name := nameOf(object[i:end], intern)
		i = skipSpace(object, skipSpace(object, end)+1) // the colon
		end = endOfValue(object, i)
		if name != "" {
			dst = setMember(dst, first, member{name, object[i:end]})
		}
		if i = skipSpace(object, end); object[i] == ',' {
			i = skipSpace(object, i+1)
		}
	}
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

func nameOf(text []byte, intern func(name []byte) string) string {
	if bytes.IndexByte(text, '\\') < 0 {
		return intern(text[1 : len(text)-1])
	}
	var name string
	if json.Unmarshal(text, &name) != nil {
		return ""
	}
	return intern([]byte(name))
}

// appendElements appends the elements of an array, at most one more than limit. ok is false if the text is no array.
func appendElements(dst [][]byte, array []byte, limit int) (elements [][]byte, ok bool) {
	i := skipSpace(array, 0)
	if i == len(array) || array[i] != '[' {
		return dst, false
	}
	for i = skipSpace(array, i+1); array[i] != ']' && len(dst) <= limit; {
		end := endOfValue(array, i)
		dst = append(dst, array[i:end])
		if i = skipSpace(array, end); array[i] == ',' {
			i = skipSpace(array, i+1)
		}
	}
	return dst, true
}

func skipSpace(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\r' || text[i] == '\t') {
		i++
	}
	return i
}

// endOfString returns where the string that begins at i ends.
func endOfString(text []byte, i int) int {
	for i++; ; i++ {
		i += bytes.IndexByte(text[i:], '"')
		escapes := 0
		for text[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
}

// endOfValue returns where the value that begins at i ends.
func endOfValue(text []byte, i int) int {
	for depth := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = endOfString(text, i) - 1
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			} else if depth < 0 { // of what the value is in
				return i
			}
		case ',', ' ', '\n', '\r', '\t':
			if depth == 0 {
				return i
			}
		}
	}
	return i
}

// plainString returns the value of a string without escapes.
func plainString(value []byte) (text string, ok bool) {
	if value[0] != '"' || bytes.IndexByte(value, '\\') >= 0 || !utf8.Valid(value) {
		return "", false
	}
	return string(value[1 : len(value)-1]), true
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
