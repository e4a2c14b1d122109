package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"

	"linkstream/schema"
)

// MaxBrowserAge is how long a browser is known after it has signed in.
const MaxBrowserAge = 180 * 24 * time.Hour

const (
	browserIDLen  = 16
	browserLen    = browserIDLen + 8 + sha256.Size // ID, Unix time at which it expires, HMAC
	browserSecret = "known browser"
)

var browserEncoding = base64.RawURLEncoding.Strict()

// NewBrowser returns a secret for a browser that has signed in to an account. A browser that shows it later is known,
// so its attempts to sign in are counted separately from attempts by unknown browsers. It ends with the password: the
// key of its HMAC is the hash of the password, so the store need not keep it.
func NewBrowser(account schema.Account) string {
	raw := make([]byte, browserIDLen, browserLen)
	rand.Read(raw) // never fails, see crypto/rand
	raw = binary.BigEndian.AppendUint64(raw, uint64(time.Now().Add(MaxBrowserAge).Unix()))
	return browserEncoding.EncodeToString(signBrowser(account, raw))
}

// IsBrowser reports whether secret has the form of one by NewBrowser.
func IsBrowser(secret string) bool { return len(secret) == browserEncoding.EncodedLen(browserLen) }

// KnownBrowser returns the name of the browser by which its attempts are counted. ok is false if the secret is another
// account's, has expired, or was made before the password changed. An account without a password has no browsers.
func KnownBrowser(account schema.Account, secret string) (name string, ok bool) {
	raw, err := browserEncoding.DecodeString(secret)
	if err != nil || len(raw) != browserLen || account.PasswordHash == "" {
		return "", false
	}
	signed := raw[:browserLen-sha256.Size]
	expires := time.Unix(int64(binary.BigEndian.Uint64(signed[browserIDLen:])), 0)
	if !hmac.Equal(signBrowser(account, signed[:len(signed):len(signed)]), raw) || !time.Now().Before(expires) {
		return "", false
	}
	return fmt.Sprintf("%d/%x", account.ID, raw[:browserIDLen]), true
}

// signBrowser appends the HMAC.
func signBrowser(account schema.Account, raw []byte) []byte {
	mac := hmac.New(sha256.New, []byte(account.PasswordHash))
	fmt.Fprintf(mac, "%s\x00%d\x00", browserSecret, account.ID)
	mac.Write(raw)
	return mac.Sum(raw)
}
