package password_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/edge/password"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// keys is a store whose key cannot be read before it is set, and in which apis are named. It hangs without apis.
type keys struct {
	key  []byte
	apis []string
}

func (k *keys) SharedValue(context.Context, string, []byte) ([]byte, error) {
	if k.key == nil {
		return nil, errors.New("away")
	}
	return k.key, nil
}

func (k *keys) SharedValues(ctx context.Context, prefix string) (map[string][]byte, error) {
	if len(k.apis) == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	named := map[string][]byte{}
	for _, api := range k.apis {
		named[prefix+api] = []byte("now")
	}
	return named, nil
}

func TestGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := func(k *keys) *password.Verifier {
			v := password.New(k, nil, schema.BaseURL{})
			_ = v.Load(t.Context())
			return v
		}
		one, restarted, other, away := open(&keys{key: []byte("key")}), open(&keys{key: []byte("key")}),
			open(&keys{key: []byte("other")}), open(&keys{})
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

// TestTry asks apis of which some do not answer.
func TestTry(t *testing.T) {
	answering := func(status int) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(schema.PasswordVerdict{Right: r.Header.Get("Authorization") != ""})
		}))
		t.Cleanup(server.Close)
		return strings.Replace(server.URL, "127.0.0.1", "localhost", 1) // is asked last
	}
	alive, broken, killed := answering(http.StatusOK), answering(http.StatusServiceUnavailable),
		"http://"+testkit.FreeAddress(t)
	frozen, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts connections for it
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Close(t, frozen) })
	hanging := "http://" + frozen.Addr().String()
	for what, apis := range map[string][]string{
		"one": {alive}, "killed": {killed, alive}, "broken": {broken, alive}, "frozen": {hanging, alive},
		"all": {killed, broken, hanging, alive},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			v := password.New(&keys{key: []byte("key"), apis: apis}, nil, schema.BaseURL{})
			for try := range 3 {
				began := time.Now()
				verdict, err := v.Try(t.Context(), schema.PasswordAttempt{LinkID: 1, Client: netip.MustParseAddr("192.0.2.1")})
				took := time.Since(began)
				if err != nil || !verdict.Right || took > 2*time.Second || try > 0 && took > time.Second {
					t.Errorf("attempt %d: %+v, %v after %v", try, verdict, err, took)
				}
			}
		})
	}
	t.Run("a store that hangs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			v := password.New(&keys{key: []byte("key")}, nil, schema.BaseURL{})
			began := time.Now()
			_, err := v.Try(t.Context(), schema.PasswordAttempt{LinkID: 1})
			testkit.Equal(t, "fails", err != nil, true)
			testkit.Equal(t, "after", time.Since(began), 2*time.Second)
		})
	})
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		v := password.New(&keys{key: []byte("key"), apis: []string{killed, broken}}, nil, schema.BaseURL{})
		if _, err := v.Try(t.Context(), schema.PasswordAttempt{LinkID: 1}); err == nil {
			t.Error("a verdict of nobody")
		}
	})
}
