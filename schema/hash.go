package schema

import (
	"crypto/rand"
	"strings"
)

// Limits of hashes. An alias is a hash that its owner chose.
const (
	HashLen     = 7  // characters of an automatic hash
	MinAliasLen = 3  // characters of the shortest alias
	MaxAliasLen = 20 // characters of the longest alias, and so of any hash
)

const hashAlphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// NewHash returns a random hash of HashLen characters of [0-9A-Za-z]. With 62^7 values a taken one is rare, but it
// happens: the caller retries when the store answers CodeConflict.
func NewHash() string {
	var hash [HashLen]byte
	var random [2 * HashLen]byte
	for n := 0; n < HashLen; {
		rand.Read(random[:]) // never fails, see crypto/rand
		for _, b := range random {
			// Reject the bytes past the last whole multiple of 62, which would favour some characters.
			if b < 248 && n < HashLen {
				hash[n] = hashAlphabet[b%62]
				n++
			}
		}
	}
	return string(hash[:])
}

// ValidHash reports whether hash can be the hash of a link: 1 to MaxAliasLen characters of [0-9A-Za-z_-]. What is not
// valid need not be looked up.
func ValidHash[T string | []byte](hash T) bool {
	if len(hash) == 0 || len(hash) > MaxAliasLen {
		return false
	}
	for i := range len(hash) {
		if !hashChar[hash[i]] {
			return false
		}
	}
	return true
}

// ValidAlias reports whether alias may be chosen: MinAliasLen to MaxAliasLen characters of [a-z0-9_-].
func ValidAlias(alias string) bool {
	return len(alias) >= MinAliasLen && ValidHash(alias) && strings.ToLower(alias) == alias
}

// ReservedAlias reports whether alias names one of the service's own paths, now or soon.
func ReservedAlias(alias string) bool { return reserved[alias] }

var hashChar = func() (set [256]bool) {
	for _, c := range []byte(hashAlphabet + "-_") {
		set[c] = true
	}
	return set
}()

var reserved = map[string]bool{
	"about": true, "account": true, "admin": true, "api": true, "app": true, "assets": true, "auth": true,
	"dashboard": true, "docs": true, "favicon": true, "healthz": true, "help": true, "index": true, "login": true,
	"logout": true, "metrics": true, "privacy": true, "readyz": true, "robots": true, "settings": true,
	"signin": true, "signout": true, "signup": true, "static": true, "status": true, "support": true, "terms": true,
}
