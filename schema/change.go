package schema

import (
	"strconv"
	"strings"
)

// Change says that what a cache may hold of a link, or of a host, is no longer so. It is sent on the topic "changes".
type Change struct {
	DomainID int64  // with Hash
	Hash     string // of a link; "" for a change of a host
	Host     string // of a domain
}

// Key names what has changed, so that a compacted topic keeps one record of it.
func (c Change) Key() string {
	if c.Hash == "" {
		return "host/" + c.Host
	}
	return "link/" + strconv.FormatInt(c.DomainID, 10) + "/" + c.Hash
}

// ParseChange returns the change that has this key, and whether there is one.
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
