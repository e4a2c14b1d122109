package sharing_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/api/sharing"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestGrant(t *testing.T) {
	share := schema.Share{ID: 7, PasswordHash: "$argon2id$one"}
	synctest.Test(t, func(t *testing.T) {
		grant := sharing.NewGrant(share)
		testkit.Equal(t, "granted", sharing.Granted(share, grant), true)
		for what, other := range map[string]schema.Share{"another share": {ID: 8, PasswordHash: share.PasswordHash},
			"another password": {ID: 7, PasswordHash: "$argon2id$two"}, "no password": {ID: 7}} {
			testkit.Equal(t, "granted with "+what, sharing.Granted(other, grant), false)
		}
		for _, forged := range []string{"", "x", grant[1:], "B" + grant[1:], strings.ToUpper(grant)} {
			testkit.Equal(t, "granted by "+forged, sharing.Granted(share, forged), false)
		}
		time.Sleep(sharing.GrantAge - time.Second)
		testkit.Equal(t, "granted at the end", sharing.Granted(share, grant), true)
		time.Sleep(time.Second)
		testkit.Equal(t, "granted later", sharing.Granted(share, grant), false)
	})
}
