package resolve

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"linkstream/schema"
)

// spelling is a way in which a path names a link. They are tried in this order until a link is found; most paths have
// one. At most two of them are looked up: a path that differs from the name as people type it cannot be a name.
type spelling uint8

const (
	exact       spelling = iota
	asTyped              // see AsTyped
	inLowerCase          // the same in lower case, if its letter case does not matter: see schema.AppendAlias
	spellings
)

// of returns the name that a path stands for in this spelling, and whether it differs from the ones before. It appends
// to dst or borrows the bytes of path.
func (s spelling) of(path, dst []byte) (name []byte, ok bool) {
	switch s {
	case exact:
		return path, true
	case asTyped:
		name = AsTyped(path)
		return name, len(name) < len(path)
	default:
		return schema.AppendAlias(dst, AsTyped(path))
	}
}

const (
	// afterName are characters that people, editors and chats put behind an address.
	afterName    = ".,;:!?)]}>'\"*”’»…"
	maxAfterName = 4
)

// AsTyped returns the name at the beginning of a path to which something was added: without all that follows a & that
// no ? precedes, then without at most maxAfterName characters of afterName, white space and invisible characters, then
// without one slash.
func AsTyped(path []byte) []byte {
	if i := bytes.IndexAny(path, "&?"); i >= 0 && path[i] == '&' {
		path = path[:i]
	}
	for range maxAfterName {
		last, size := utf8.DecodeLastRune(path)
		if !isAfterName(last) {
			break
		}
		path = path[:len(path)-size]
	}
	return bytes.TrimSuffix(path, []byte("/"))
}

// isAfterName reports whether AsTyped leaves out a character at the end. Invisible ones are Unicode's
// Default_Ignorable_Code_Point, among them zero-width spaces and joiners.
func isAfterName(c rune) bool {
	return strings.ContainsRune(afterName, c) || unicode.IsSpace(c) ||
		unicode.In(c, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}
