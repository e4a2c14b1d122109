package schema

import (
	"strconv"
	"strings"
)

// Change invalidates caches: a link, a host or all links of an account have changed. It is published from the store's
// Outbox on the topic "changes".
type Change struct {
	DomainID  int64  // of the link
	Hash      string // of the link; "" if something else has changed
	Host      string // that has changed; "" if something else has
	AccountID int64  // all of whose links have changed; 0 if something else has
}

// ChangePosition is a position in the log of changes, between two changes. Last identifies the log, so that the
// position means nothing in another one. The zero value is no position.
type ChangePosition struct {
	Next int64  // offset of the change that follows
	Last uint64 // derived from the change before; not 0
}

// Key returns the record key of the change: "link/1/abc", "host/go.example.com" or "account/1". The compacted topic
// keeps one record per key.
func (c Change) Key() string {
	switch {
	case c.AccountID != 0:
		return "account/" + strconv.FormatInt(c.AccountID, 10)
	case c.Hash == "":
		return "host/" + c.Host
	}
	return "link/" + strconv.FormatInt(c.DomainID, 10) + "/" + c.Hash
}

// ParseChange is the inverse of Key. It reports whether key is valid.
func ParseChange(key string) (Change, bool) {
	kind, rest, _ := strings.Cut(key, "/")
	switch kind {
	case "account":
		id, err := strconv.ParseInt(rest, 10, 64)
		return Change{AccountID: id}, err == nil && id != 0
	case "host":
		return Change{Host: rest}, rest != ""
	case "link":
		id, hash, _ := strings.Cut(rest, "/")
		domainID, err := strconv.ParseInt(id, 10, 64)
		return Change{DomainID: domainID, Hash: hash}, err == nil && ValidHash(hash)
	}
	return Change{}, false
}
