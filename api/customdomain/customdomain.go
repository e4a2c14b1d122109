// Package claim is what an account has to do with hostnames: which ones it may claim, and what DNS has to say before a
// claim counts.
package customdomain

import (
	"crypto/rand"
	"time"

	"linkstream/schema"
)

// txtPrefix stands before a host in the name of its TXT record. The host itself has a CNAME record, and beside that no
// other record may stand (RFC 1034, section 3.6.2).
const txtPrefix = "_linkstream."

const challengePrefix = "linkstream-verification="

// New returns an account's claim on a host, which ParseHost has returned, with a challenge that nobody can guess.
func New(accountID int64, host string) schema.Domain {
	return schema.Domain{
		AccountID: accountID, Host: host, Challenge: challengePrefix + rand.Text(), CreatedAt: time.Now().UTC(),
	}
}
