package schema

import (
	"strconv"
	"strings"
)

// Change tells caches that a link or a host has changed. It is published on the topic "changes".
type Change struct {
	DomainID int64  // of the link
	Hash     string // of the link; "" if a host has changed
	Host     string // that has changed
}

// Key returns the record key of the change: "link/1/abc" or "host/go.example.com". The compacted topic keeps one record
// per key.
func (c Change) Key() string {
	if c.Hash == "" {
		return "host/" + c.Host
	}
	return "link/" + strconv.FormatInt(c.DomainID, 10) + "/" + c.Hash
}

// ParseChange is the inverse of Key. It reports whether key is valid.
func ParseChange(key string) (Change, bool) {
	kind, rest, _ := strings.Cut(key, "/")
	switch kind {
	case "host":
		return Change{Host: rest}, rest != ""
	case "link":
		id, hash, _ := strings.Cut(rest, "/")
		domainID, err := strconv.ParseInt(id, 10, 64)
		return Change{DomainID: domainID, Hash: hash}, err == nil && ValidHash(hash)
	}
	return Change{}, false
}
