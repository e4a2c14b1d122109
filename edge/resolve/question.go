package resolve

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode"
	"unicode/utf8"

	"linkstream/schema"
)

// question is the names that a path may stand for, in the order in which they are asked for: the path itself; the
// names at its beginning, the longest first, if their links allow paths; the path as people type it. One look-up
// answers it. If none of them is found, the path as people type it in lower case is another question, unless its letter
// case matters (schema.AppendAlias).
//
// A question is the key of a look-up: the ID of the domain in 8 bytes, then the names, each with a mark behind it. The
// question of one name that takes the whole path is the key of the link, linkKey.
type question struct {
	key    []byte // borrows buffer
	buffer [questionLen]byte
	link   linkKey // for the key of one of the names
}

// The marks of names. No name has such a byte.
const (
	isWhole   = '\n' // the name is the whole path; left out behind the last name
	isBefore  = '\t' // the path goes on behind the name, which counts if the link itself allows paths
	byDefault = '*'  // the same, on a domain whose links allow paths unless they say otherwise

	maxSegments = 8               // of a name with a path behind it
	maxNames    = maxSegments + 2 // of a question
	questionLen = 8 + maxNames*(schema.MaxAliasLen+1)
)

// ask sets the first question of a path on a domain, and reports whether the path may stand for any name.
func (q *question) ask(domain domainID, path []byte, before byte) bool {
	q.key = binary.BigEndian.AppendUint64(q.buffer[:0], uint64(domain))
	q.add(path, isWhole)
	var ends [maxSegments]int // of the names that a path follows
	segments := 0
	for i := 0; i <= schema.MaxAliasLen && i < len(path) && segments < maxSegments; i++ {
		if path[i] == '/' {
			ends[segments] = i
			segments++
		}
	}
	if segments == 1 && ends[0] == len(path)-1 {
		segments = 0 // as people type it, the path stands for the same name
	}
	for ; segments > 0; segments-- {
		q.add(path[:ends[segments-1]], before)
	}
	if typed := AsTyped(path); len(typed) < len(path) {
		q.add(typed, isWhole)
	}
	q.key = bytes.TrimSuffix(q.key, []byte{isWhole})
	return len(q.key) > 8
}

// askLower sets the second question of a path, and reports whether there is one.
func (q *question) askLower(domain domainID, path []byte) bool {
	key, ok := schema.AppendAlias(binary.BigEndian.AppendUint64(q.buffer[:0], uint64(domain)), AsTyped(path))
	q.key = key
	return ok
}

// add adds a name, unless no link can have it.
func (q *question) add(name []byte, mark byte) {
	if schema.ValidHash(name) {
		q.key = append(append(q.key, name...), mark)
	}
}

// names iterates over the names of a question, with their marks.
func names[T string | []byte](key T) func(yield func(name T, mark byte) bool) {
	return func(yield func(T, byte) bool) {
		for begin, end := 8, 8; end <= len(key); end++ {
			mark := byte(isWhole)
			if end < len(key) {
				mark = key[end]
			}
			if mark != isWhole && mark != isBefore && mark != byDefault {
				continue
			}
			if begin < len(key) && !yield(key[begin:end], mark) {
				return
			}
			begin = end + 1
		}
	}
}

// countNames returns the number of names of a question.
func countNames(key string) (n int) {
	for range names(key) {
		n++
	}
	return n
}

// firstName returns the first name of a question.
func firstName(key string) string {
	for name := range names(key) {
		return name
	}
	return ""
}

// markOf returns the mark of a name of a question.
func markOf[T string | []byte](key T, name int) byte {
	for _, mark := range names(key) {
		if name--; name < 0 {
			return mark
		}
	}
	return isWhole
}

// linkKey returns the key of the link with one of the names, until the next call.
func (q *question) linkKey(name []byte) []byte {
	return append(append(q.link[:0], q.key[:8]...), name...)
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
