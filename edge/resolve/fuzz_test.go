package resolve_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"linkstream/edge/resolve"
	"linkstream/schema"
)

// FuzzResolve checks for any Host header and path that
//   - memory says what Resolve said a moment ago,
//   - the link of one host is not found on another.
func FuzzResolve(f *testing.F) {
	for _, host := range []string{
		"sho.rt", "SHO.RT.:80", "go.example.com", "go.example.com.", "[::1]:80", "[fe80::1%25eth0]", "127.1",
		"go.example.com:x", "xn--bcher-kva.example", ":", "[", "..", "\xff", strings.Repeat("a.", 130)} {
		f.Add(host, "own")
	}
	f.Add("sho.rt", "a/b")
	f.Add("go.example.com", "OWN/.&x")
	f.Add("sho.rt", "own\x00")
	e := newEnv(f, nil)
	const target = "https://own.example/"
	e.link(f, e.domain(f, "go.example.com", true), "own", target)
	f.Fuzz(func(t *testing.T, host, hash string) {
		now := time.Now()
		first, err := e.resolver.Resolve([]byte(host), []byte(hash), netip.Addr{}, now)
		name, _, _ := strings.Cut(host, ":")
		isOwn := strings.EqualFold(string(resolve.AsTyped([]byte(hash))), "own")
		if found := err == nil; found != (strings.TrimSuffix(name, ".") == "go.example.com" && isOwn) {
			t.Errorf("%q on %q: %s, error %v", hash, host, first.Location, err)
		}
		if code := schema.ErrorCode(err); code != "" && code != schema.CodeNotFound {
			t.Errorf("%q on %q: error %v", hash, host, err)
		}
		again, lookup, errAgain := e.resolver.TryResolve([]byte(host), []byte(hash), netip.Addr{}, now, nil, make(doneChan))
		if lookup != nil || string(again.Location) != string(first.Location) || (err == nil) != (errAgain == nil) {
			t.Errorf("%q on %q: memory says %s, error %v; want %s, error %v",
				hash, host, again.Location, errAgain, first.Location, err)
		}
	})
}
