// Package access decides who may call the api, and how often: tokens, passwords and the rate limit.
package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"time"

	"linkstream/schema"
)

// TokenMark begins every token's secret, so that scanners for leaked secrets can tell one.
const TokenMark = "ls_"

const (
	tokenBytes  = 32 // random ones of a new token
	minTokenLen = len(TokenMark) + 32
	maxTokenLen = 256
	prefixLen   = 8 // characters of the secret that lists may show
)

// NewToken returns a token that is ready to be stored, and its secret, which must be shown now or never.
func NewToken(accountID int64, name string) (secret string, token schema.Token) {
	secret = newSecret()
	return secret, tokenOf(accountID, name, secret)
}

func newSecret() string {
	var random [tokenBytes]byte
	rand.Read(random[:]) // never fails, see crypto/rand
	return TokenMark + base64.RawURLEncoding.EncodeToString(random[:])
}

func tokenOf(accountID int64, name, secret string) schema.Token {
	return schema.Token{
		AccountID: accountID, Name: name, Prefix: secret[:prefixLen], Digest: Digest(secret),
		CreatedAt: time.Now().UTC(),
	}
}

// Digest returns what is stored of a token's secret. A plain hash is enough for a secret that nobody can guess.
func Digest(secret string) [sha256.Size]byte { return sha256.Sum256([]byte(secret)) }

func checkToken(secret string) error {
	if !validToken(secret) {
		return schema.Errorf(schema.CodeInvalid, "A token must be %s and %d to %d characters of 0-9, A-Z, a-z, _ and -.",
			TokenMark, minTokenLen-len(TokenMark), maxTokenLen-len(TokenMark))
	}
	return nil
}

// validToken reports whether secret can be a token's. What cannot need not be looked up.
func validToken[T string | []byte](secret T) bool {
	if len(secret) < minTokenLen || len(secret) > maxTokenLen || string(secret[:len(TokenMark)]) != TokenMark {
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
