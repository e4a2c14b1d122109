package schema

import "strings"

// PathMode says what becomes of the path behind a link's name: of rest in /name/rest, unless there is such a link.
type PathMode string

// The modes.
const (
	PathDefault PathMode = ""       // of a link: as its domain says; of a domain: PathNone
	PathNone    PathMode = "none"   // visitors do not reach the link
	PathIgnore  PathMode = "ignore" // they are sent to the link's URL
	PathAppend  PathMode = "append" // they are sent to the link's URL with rest at the end of its path
)

// Valid reports whether m is a mode.
func (m PathMode) Valid() bool {
	return m == PathDefault || m == PathNone || m == PathIgnore || m == PathAppend
}

// PathPattern stands for rest in a long URL, in its path or query.
const PathPattern = "{path}"

// HasPathPattern reports whether a long URL has a PathPattern.
func HasPathPattern(longURL string) bool {
	_, rest, _ := strings.Cut(longURL, "://")
	begin := strings.IndexAny(rest, `/?#\`)
	if begin < 0 {
		return false
	}
	rest, _, _ = strings.Cut(rest[begin:], "#")
	return strings.Contains(rest, PathPattern)
}
