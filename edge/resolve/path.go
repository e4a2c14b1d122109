package resolve

import (
	"bytes"
	"encoding/binary"
	"time"

	"linkstream/schema"
)

// paths says in an entry of a link what becomes of a path behind its name.
type paths byte

// The modes. 0 leaves it to the domain.
const (
	pathsNone paths = 1 + iota
	pathsIgnored
	pathsAppended

	pathsMode    = 3 // the bits of the mode
	pathsPattern = 4 // the link's own URL has a pattern
	pathsBeneath = 8 // there may be names that begin with this name and a slash
)

func pathsOfMode(mode schema.PathMode) paths {
	switch mode {
	case schema.PathNone:
		return pathsNone
	case schema.PathIgnore:
		return pathsIgnored
	case schema.PathAppend:
		return pathsAppended
	}
	return 0
}

// pathsOf returns the paths of a link's entry.
func pathsOf(d *schema.EdgeLink) paths {
	mode, pattern := d.Behaviour.Paths(d.URL)
	p := pathsOfMode(mode)
	if pattern {
		p |= pathsPattern
	}
	if d.Beneath {
		p |= pathsBeneath
	}
	return p
}

// answers reports whether a link answers a question in which its name has a mark.
func answers(p paths, mark byte) bool {
	switch mode := p & pathsMode; mode {
	case 0:
		return mark != isBefore
	case pathsNone:
		return mark == isWhole
	}
	return true
}

// before returns the mark of the names on a domain that a path follows.
func before(domain *entry[domainID]) byte {
	if modeOfSite(domain) >= pathsIgnored {
		return byDefault
	}
	return isBefore
}

func modeOfSite(domain *entry[domainID]) paths {
	return paths(siteField(domain.answer(), fieldPathMode).value)
}

// Settle makes the target of a path behind the link's name what it is at the time now. Unless the link is stopped or
// has expired, Stop is Extended then.
func (r *Resolver) Settle(t *Target, now time.Time) {
	t.Location, t.Forward, t.Stop = decodeAnswer(t.entry.answer(), now)
	if t.Stop == NotStopped && now.Unix() < cutAnswer(t.entry.answer()).expiry {
		t.Location, t.Stop = nil, Extended
	}
	r.finish(t)
}

// IsBehind reports whether the path goes on behind the link's name.
func (t *Target) IsBehind() bool { return t.behind }

// NameLen returns the length of the link's name.
func (t *Target) NameLen() int { return len(t.entry.key()) - 8 }

// MaxLocation is the most bytes of a location with parts of a request in it. Servers take 8 KiB, few take more.
const MaxLocation = 8 << 10

// HasPlace reports whether AppendRest changes a location.
func (t *Target) HasPlace(rest []byte, isURL bool) bool {
	return isURL && t.entry.paths&pathsPattern != 0 || len(rest) > 0 && t.mode() == pathsAppended
}

// mode returns the mode of the link, or else of its domain.
func (t *Target) mode() paths {
	if mode := t.entry.paths & pathsMode; mode != 0 {
		return mode
	}
	return modeOfSite(t.host)
}

// AppendRest appends location with rest, the path behind the link's name as it was sent, to dst. isURL says that
// location is the link's own URL, not a rule's or a variant's. It reports whether the result has at most MaxLocation
// bytes. rest has to be valid or empty, and location to have a place for it.
func (t *Target) AppendRest(dst, location, rest []byte, isURL bool) (result []byte, ok bool) {
	if isURL && t.entry.paths&pathsPattern != 0 {
		_, x := t.Extended()
		return appendFilled(dst, location, x.pattern(), rest)
	}
	return appendJoined(dst, location, rest)
}

// appendJoined appends location with rest at the end of its path. Bytes that no URL may have are percent-encoded.
func appendJoined(dst, location, rest []byte) (result []byte, ok bool) {
	if len(location)+len(rest) > MaxLocation {
		return dst, false
	}
	end := bytes.IndexAny(location, "?#")
	if end < 0 {
		end = len(location)
	}
	begin := len(dst)
	dst = append(dst, location[:end]...)
	if dst[len(dst)-1] != '/' {
		dst = append(dst, '/')
	}
	for _, c := range rest {
		if c > ' ' && c < 0x7f && c != '#' && c != '?' {
			dst = append(dst, c)
		} else {
			dst = appendEscape(dst, c)
		}
	}
	dst = append(dst, location[end:]...)
	return dst, len(dst)-begin <= MaxLocation
}

// The places of a pattern, as a behaviour has them: for each one its offset in the location and whether it is in the
// query, offset<<1 | 1, as a uvarint.

// appendPattern appends the places of schema.PathPattern in the path and the query of a location.
func appendPattern(dst, location []byte) []byte {
	_, rest, _ := bytes.Cut(location, []byte("://"))
	begin := bytes.IndexAny(rest, `/?#\`)
	if begin < 0 {
		return dst
	}
	begin += len(location) - len(rest)
	path, _, _ := bytes.Cut(location, []byte("#"))
	query := bytes.IndexByte(path, '?')
	for {
		i := bytes.Index(path[min(begin, len(path)):], []byte(schema.PathPattern))
		if i < 0 {
			return dst
		}
		place := uint64(begin+i) << 1
		if query >= 0 && begin+i > query {
			place |= 1
		}
		dst = binary.AppendUvarint(dst, place)
		begin += i + len(schema.PathPattern)
	}
}

// appendFilled appends location with rest, decoded once and encoded, in the places of its pattern.
func appendFilled(dst, location, pattern, rest []byte) (result []byte, ok bool) {
	begin, copied := len(dst), 0
	for len(pattern) > 0 {
		place, n := binary.Uvarint(pattern)
		pattern = pattern[n:]
		at := int(place >> 1)
		dst = append(dst, location[copied:at]...)
		dst = appendEncoded(dst, rest, place&1 != 0)
		if copied = at + len(schema.PathPattern); len(dst)-begin > MaxLocation {
			return dst, false
		}
	}
	dst = append(dst, location[copied:]...)
	return dst, len(dst)-begin <= MaxLocation
}

// appendEncoded appends the bytes of rest, decoded once, for a path or a query.
func appendEncoded(dst, rest []byte, inQuery bool) []byte {
	for i := 0; i < len(rest); {
		c, size := DecodeByte(rest[i:])
		if unreserved[c] || c == '/' && !inQuery {
			dst = append(dst, c)
		} else {
			dst = appendEscape(dst, c)
		}
		i += size
	}
	return dst
}

// validPattern reports whether places that come from outside of the process are in a location.
func validPattern(pattern, location []byte) bool {
	return bytes.Equal(pattern, appendPattern(nil, location))
}

// unreserved are the characters that mean the same everywhere in a URL, encoded or not (RFC 3986, section 2.3).
var unreserved = func() (set [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~") {
		set[c] = true
	}
	return set
}()

func appendEscape(dst []byte, c byte) []byte {
	const hex = "0123456789ABCDEF"
	return append(dst, '%', hex[c>>4], hex[c&15])
}

// DecodeByte returns the first byte of an encoded text that is not empty, decoded, and how many bytes it takes there. A
// % that begins no escape stands for itself.
func DecodeByte(text []byte) (c byte, size int) {
	if text[0] != '%' || len(text) < 3 {
		return text[0], 1
	}
	high, low := hexDigit(text[1]), hexDigit(text[2])
	if high|low > 15 {
		return '%', 1
	}
	return high<<4 | low, 3
}

// hexDigit returns the value of a digit, 255 for other characters.
func hexDigit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}

// ValidRest reports whether a path as it was sent may follow a link's name: it has no backslash and no segment that is
// empty, . or .., also if they are encoded, so that no browser or server reads it as a host or as a path above. One
// slash may be at its end.
func ValidRest(rest []byte) bool {
	begins, dots := true, 0 // a segment; that it has, and nothing else, else -1
	for i := 0; i < len(rest); {
		c, size := DecodeByte(rest[i:])
		switch {
		case c == '\\', c == '/' && begins:
			return false
		case c == '/' && (dots == 1 || dots == 2):
			return false
		case c == '/':
			begins, dots = size == 1, 0
		case c == '.' && dots >= 0:
			begins, dots = false, dots+1
		default:
			begins, dots = false, -1
		}
		i += size
	}
	return dots != 1 && dots != 2
}
