package schema

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/netip"
)

// MaxLinkPasswordLen bounds the password of a link in characters.
const MaxLinkPasswordLen = 128

// PasswordAttempt is a visitor's input for a link that asks for a password. An edge asks an api for the verdict,
// because edges have no hashes of passwords.
type PasswordAttempt struct {
	LinkID   int64      `json:"link_id"`
	Client   netip.Addr `json:"client"` // the zero Addr if it is unknown
	Password string     `json:"password"`
}

// PasswordVerdict is the outcome of an attempt.
type PasswordVerdict struct {
	Right   bool  `json:"right"`
	Version int64 `json:"version"` // of the password that was right
	Wait    int   `json:"wait"`    // seconds until the client may try again; 0: the attempt was checked
}

// PasswordPath is where an api takes attempts, as JSON, with the Bearer token PasswordToken.
const PasswordPath = "/internal/link-password"

// PasswordToken returns the token by which edges authenticate to an api, derived from the shared value
// SharedPasswordKey.
func PasswordToken(key []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("edges ask apis"))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
