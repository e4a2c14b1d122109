package sharing

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"

	"linkstream/schema"
)

// GrantAge is how long a reader who has given the password is not asked again.
const GrantAge = 12 * time.Hour

// NewGrant returns what a reader's browser shows instead of the password for GrantAge. It ends with the share: the key
// of its HMAC is the hash of the password, so nothing is stored.
func NewGrant(share schema.Share) string {
	return base64.RawURLEncoding.EncodeToString(sign(share,
		binary.BigEndian.AppendUint64(nil, uint64(time.Now().Add(GrantAge).Unix()))))
}

// Granted reports whether a reader has shown a grant for the share.
func Granted(share schema.Share, grant string) bool {
	raw, err := base64.RawURLEncoding.DecodeString(grant)
	if err != nil || len(raw) != 8+sha256.Size || share.PasswordHash == "" {
		return false
	}
	expires := time.Unix(int64(binary.BigEndian.Uint64(raw)), 0)
	return hmac.Equal(sign(share, raw[:8:8]), raw) && time.Now().Before(expires)
}

// sign appends the HMAC.
func sign(share schema.Share, raw []byte) []byte {
	mac := hmac.New(sha256.New, []byte(share.PasswordHash))
	fmt.Fprintf(mac, "shared report\x00%d\x00", share.ID)
	mac.Write(raw)
	return mac.Sum(raw)
}
