package password_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/edge/password"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// keys is a store whose key cannot be read before it is set.
type keys struct{ key []byte }

func (k *keys) SharedValue(context.Context, string, []byte) ([]byte, error) {
	if k.key == nil {
		return nil, errors.New("away")
	}
	return k.key, nil
}

func TestGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := func(k *keys) *password.Verifier {
			v := password.New(k, nil, schema.BaseURL{})
			_ = v.Load(t.Context())
			return v
		}
		one, restarted, other, away := open(&keys{[]byte("key")}), open(&keys{[]byte("key")}), open(&keys{[]byte("other")}),
			open(&keys{})
		grant := []byte(one.Grant(7, 8, time.Now()))
		for what, c := range map[string]struct {
			verifier      *password.Verifier
			link, version int64
			after         time.Duration
			want          bool
		}{
			"the same edge": {one, 7, 8, 0, true}, "a restarted edge": {restarted, 7, 8, password.Life - time.Second, true},
			"later": {one, 7, 8, password.Life, false}, "another link": {one, 6, 8, 0, false},
			"another version": {one, 7, 9, 0, false},
			"another key":     {other, 7, 8, 0, false}, "no key": {away, 7, 8, 0, false},
			"link and version exchanged": {one, 8, 7, 0, false},
		} {
			testkit.Equal(t, what, c.verifier.ValidGrant(grant, c.link, c.version, time.Now().Add(c.after)), c.want)
		}
		for i := range grant { // another time of expiry, or another code
			forged := append([]byte(nil), grant...)
			forged[i] ^= 1
			if one.ValidGrant(forged, 7, 8, time.Now()) && i < len(grant)-1 { // whose last bits mean nothing
				t.Errorf("%q is taken for %q", forged, grant)
			}
		}
		testkit.Equal(t, "grant without a key", away.Grant(7, 8, time.Now()), "")
	})
}
