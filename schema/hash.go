package schema

import (
	"crypto/rand"
	"encoding/binary"
	"math"
	"strings"
)

// Limits of hashes. An alias is a hash that the owner of the link chose.
const (
	HashLen           = 7   // characters of a random hash
	MinAliasLen       = 3   // characters on the default domain
	MaxAliasLen       = 128 // characters, also the limit of all hashes
	MaxCustomAliasLen = 20  // characters: see ValidCustomAlias
)

const (
	hashAlphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	// automaticAlphabet leaves out what people take for another character: 0 and O, 1, l and I.
	automaticAlphabet = "23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
)

// NewHash returns a random hash of HashLen characters from [0-9A-Za-z] without 0, O, 1, l and I. There are 57^7 hashes,
// so a collision is rare, but possible: the caller retries if the store returns CodeConflict.
func NewHash() string {
	const n = uint64(len(automaticAlphabet))
	const all = n * n * n * n * n * n * n // hashes
	for {
		var random [8]byte
		rand.Read(random[:]) // never fails, see crypto/rand
		// Without this limit, the largest multiple of all, some hashes would be more frequent.
		if number := binary.BigEndian.Uint64(random[:]); number < math.MaxUint64/all*all {
			return HashOf(number)
		}
	}
}

// HashOf returns the automatic hash that a number stands for. Numbers that differ by a multiple of 57^7 stand for the
// same hash.
func HashOf(number uint64) string {
	var hash [HashLen]byte
	for i := range hash {
		hash[i] = automaticAlphabet[number%uint64(len(automaticAlphabet))]
		number /= uint64(len(automaticAlphabet))
	}
	return string(hash[:])
}

// AppendAlias appends the alias for a hash with capitals whose letter case does not matter, and reports whether there
// is one: in lower case it is an alias that cannot be an automatic hash. In all other hashes letter case matters.
func AppendAlias(dst, hash []byte) (alias []byte, ok bool) {
	if !ValidHash(hash) {
		return dst, false
	}
	capitals, automatic := false, len(hash) == HashLen
	for _, c := range hash {
		if 'A' <= c && c <= 'Z' {
			capitals = true
			c += 'a' - 'A'
		}
		automatic = automatic && strings.IndexByte(automaticAlphabet, c) >= 0
		dst = append(dst, c)
	}
	return dst, capitals && !automatic
}

// ValidHash reports whether hash can be the hash of a link: 1 to MaxAliasLen characters from [0-9A-Za-z._~/-], no slash
// or dot first or last, no segment that is empty, "." or "..". Other strings need no look-up.
func ValidHash[T string | []byte](hash T) bool {
	if len(hash) == 0 || len(hash) > MaxAliasLen || hash[0] == '.' || hash[len(hash)-1] == '.' {
		return false
	}
	for first, i := 0, 0; i <= len(hash); i++ { // first is where a segment begins
		switch {
		case i == len(hash) || hash[i] == '/':
			if n := i - first; n == 0 || n <= 2 && hash[first] == '.' && hash[i-1] == '.' {
				return false
			}
			first = i + 1
		case !hashChar[hash[i]]:
			return false
		}
	}
	return true
}

// AliasProblem returns a sentence for clients that says why no link can get an alias, "" if one can. The default domain
// has no aliases of less than MinAliasLen characters.
func AliasProblem(alias string, onDefault bool) string {
	switch {
	case !ValidHash(alias):
		return "The alias must have 1 to 128 characters of A-Z a-z 0-9 . _ ~ - and /, without / or . first or last, " +
			"and with no part between slashes that is empty, . or .."
	case ReservedAlias(alias):
		return "The alias is reserved."
	case onDefault && len(alias) < MinAliasLen:
		return "On the default domain, the alias must have at least 3 characters."
	}
	return ""
}

// ValidCustomAlias reports whether alias has MinAliasLen to MaxCustomAliasLen characters from [a-z0-9_-].
func ValidCustomAlias(alias string) bool {
	for i := range len(alias) {
		if c := alias[i]; !tagChar[c] {
			return false
		}
	}
	return MinAliasLen <= len(alias) && len(alias) <= MaxCustomAliasLen
}

// ReservedAlias reports whether an alias is among the service's own paths, present and future: whether its first
// segment, in any letter case, alone or before a dot, is a reserved word.
func ReservedAlias(alias string) bool {
	if end := strings.IndexAny(alias, "/."); end >= 0 {
		alias = alias[:end]
	}
	return reserved[strings.ToLower(alias)]
}

// hashChar has the characters of segments of hashes, and tagChar the characters of tags and custom aliases.
var hashChar, tagChar = charSet(hashAlphabet + "-_.~"), charSet("0123456789abcdefghijklmnopqrstuvwxyz-_")

func charSet(chars string) (set [256]bool) {
	for _, c := range []byte(chars) {
		set[c] = true
	}
	return set
}

var reserved = map[string]bool{
	"about": true, "account": true, "admin": true, "api": true, "app": true, "assets": true, "auth": true,
	"dashboard": true, "docs": true, "favicon": true, "healthz": true, "help": true, "index": true, "login": true,
	"logout": true, "metrics": true, "privacy": true, "readyz": true, "robots": true, "settings": true,
	"signin": true, "signout": true, "signup": true, "static": true, "status": true, "support": true, "terms": true,
}
