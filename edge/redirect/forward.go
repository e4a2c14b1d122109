package redirect

import (
	"bytes"

	"linkstream/edge/resolve"
)

// forwardBuffer holds a location with parts of a request.
type forwardBuffer [resolve.MaxLocation]byte

// forward returns location with the query string of a request. Location's own query comes first, then the visitor's,
// unchanged except that bytes that no URL may have are percent-encoded, then location's fragment (RFC 3986, section 3).
// A result of more than resolve.MaxLocation bytes is location alone. The result belongs to the buffer, or is location.
func (b *forwardBuffer) forward(location, query []byte) []byte {
	base, fragment := location, []byte(nil)
	if i := bytes.IndexByte(location, '#'); i >= 0 {
		base, fragment = location[:i], location[i:]
	}
	between := "?"
	switch i := bytes.IndexByte(base, '?'); {
	case i == len(base)-1:
		between = ""
	case i >= 0:
		between = "&"
	}
	length := len(location) + len(between) + len(query)
	for _, c := range query {
		if !visible(c) {
			length += 2
		}
	}
	if length > resolve.MaxLocation {
		return location
	}
	dst := append(append(b[:0], base...), between...)
	for _, c := range query {
		if visible(c) {
			dst = append(dst, c)
		} else {
			const hex = "0123456789ABCDEF"
			dst = append(dst, '%', hex[c>>4], hex[c&15])
		}
	}
	return append(dst, fragment...)
}

// visible reports whether a byte may be in a query. A # would begin the fragment.
func visible(c byte) bool { return c > ' ' && c < 0x7f && c != '#' }
