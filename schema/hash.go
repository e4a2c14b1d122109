package schema

import (
	"crypto/rand"
	"strings"
)

// Limits of hashes. An alias is a hash that the owner of the link chose.
const (
	HashLen     = 7  // characters of a random hash
	MinAliasLen = 3  // characters
	MaxAliasLen = 20 // characters, also the limit of all hashes
)

const hashAlphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// NewHash returns a random hash of HashLen characters from [0-9A-Za-z]. There are 62^7 hashes, so a collision is rare,
// but possible: the caller retries if the store returns CodeConflict.
func NewHash() string {
	var hash [HashLen]byte
	var random [2 * HashLen]byte
	for n := 0; n < HashLen; {
		rand.Read(random[:]) // never fails, see crypto/rand
		for _, b := range random {
			// Without this limit, the largest multiple of 62, some characters would be more frequent.
			if b < 248 && n < HashLen {
				hash[n] = hashAlphabet[b%62]
				n++
			}
		}
	}
	return string(hash[:])
}

// ValidHash reports whether hash can be the hash of a link: 1 to MaxAliasLen characters from [0-9A-Za-z_-]. Other
// strings need no look-up.
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

// ValidAlias reports whether alias has MinAliasLen to MaxAliasLen characters from [a-z0-9_-].
func ValidAlias(alias string) bool {
	return len(alias) >= MinAliasLen && ValidHash(alias) && strings.ToLower(alias) == alias
}

// ReservedAlias reports whether alias is reserved for the service's own paths, present and future.
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
