// Package auth authenticates callers: API tokens for the API, passwords and sessions for the dashboard.
package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"time"

	"linkstream/schema"
)

// TokenPrefix begins every token, so that scanners for leaked secrets recognize it.
const TokenPrefix = "ls_"

const (
	tokenBytes  = 32 // random bytes of a new token
	minTokenLen = len(TokenPrefix) + 32
	maxTokenLen = 256
	shownLen    = 8 // characters of a token that lists may show
)

// NewToken returns a random token and the record to store for it. The record holds a digest only: secret cannot be
// shown again later.
func NewToken(accountID int64, name string) (secret string, token schema.Token) {
	var random [tokenBytes]byte
	rand.Read(random[:]) // never fails, see crypto/rand
	secret = TokenPrefix + base64.RawURLEncoding.EncodeToString(random[:])
	return secret, newToken(accountID, name, secret)
}

// ParseToken returns the record to store for a token that an operator chose. CodeInvalid if secret does not have the
// form of a token.
func ParseToken(accountID int64, name, secret string) (schema.Token, error) {
	if !validToken(secret) {
		return schema.Token{}, schema.ClientErrorf(schema.CodeInvalid,
			"A token must be %s and %d to %d characters of 0-9, A-Z, a-z, _ and -.",
			TokenPrefix, minTokenLen-len(TokenPrefix), maxTokenLen-len(TokenPrefix))
	}
	return newToken(accountID, name, secret), nil
}

func newToken(accountID int64, name, secret string) schema.Token {
	return schema.Token{
		AccountID: accountID, Name: name, Prefix: secret[:shownLen], Digest: Digest(secret),
		CreatedAt: time.Now().UTC(),
	}
}

// Digest returns the digest by which stores know a secret. A plain hash without salt is enough, because secrets are
// random.
func Digest(secret string) [sha256.Size]byte { return sha256.Sum256([]byte(secret)) }

// validToken reports whether secret has the form of a token. Anything else is refused without a look-up.
func validToken[T string | []byte](secret T) bool {
	if len(secret) < minTokenLen || len(secret) > maxTokenLen || string(secret[:len(TokenPrefix)]) != TokenPrefix {
		return false
	}
	for i := range len(secret) {
		switch c := secret[i]; {
		case c >= '0' && c <= '9', c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}
