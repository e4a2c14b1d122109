package resolve_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"testing"
	"time"

	"linkstream/edge/resolve"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// pathLink creates a link with a path mode.
func (e *env) pathLink(t testing.TB, domainID int64, hash, url string, mode schema.PathMode) schema.Link {
	t.Helper()
	link := schema.Link{AccountID: e.accountID, DomainID: domainID, Hash: hash, URL: url, Active: true,
		CreatedAt: time.Now(), Behaviour: &schema.Behaviour{PathMode: mode}}
	testkit.Must(t, e.store.CreateLink(t.Context(), &link))
	return link
}

// found returns the name that answers a path, and a * behind it if the path goes on behind the name, or "".
func found(t testing.TB, r *tried) string {
	t.Helper()
	r.wait(t)
	switch {
	case r.err != nil:
		testkit.WantCode(t, r.err, schema.CodeNotFound)
		return ""
	case r.target.IsBehind():
		return r.hash[:r.target.NameLen()] + "*"
	}
	return string(r.target.Location)
}

// A path leads to the longest name that it begins with and that allows paths, unless it is a name itself.
func TestPathsBehindNames(t *testing.T) {
	now := time.Now()
	e := newEnv(t, nil)
	own := e.domain(t, "go.example.com", true)
	append := func(domain int64, hash string) {
		e.pathLink(t, domain, hash, "https://"+strings.NewReplacer("/", ".").Replace(hash), schema.PathAppend)
	}
	append(0, "go")
	append(0, "go/a/b")
	append(0, "1/2/3/4/5/6/7/8")
	append(0, "1/2/3/4/5/6/7/8/9")
	append(own, "own")
	e.pathLink(t, 0, "left", "https://left", schema.PathIgnore)
	e.pathLink(t, 0, "none", "https://none", schema.PathNone)
	e.link(t, 0, "plain", "https://plain")
	e.link(t, 0, "go/plain", "https://go.plain")
	e.link(t, 0, "go/a/b/plain", "https://go.a.b.plain")
	cases := []struct{ host, path, want string }{
		{"sho.rt", "go", "https://go"}, {"sho.rt", "go/", "https://go"}, {"sho.rt", "go/x", "go*"},
		{"sho.rt", "go/x/y/z", "go*"}, {"sho.rt", "go/a", "go*"}, {"sho.rt", "go/a/b", "https://go.a.b"},
		{"sho.rt", "go/a/b/", "go/a/b*"}, {"sho.rt", "go/a/b/c", "go/a/b*"}, {"sho.rt", "go/a/bc", "go*"},
		{"sho.rt", "go/plain", "https://go.plain"}, {"sho.rt", "go/plain/x", "go*"},
		{"sho.rt", "go/a/b/plain", "https://go.a.b.plain"}, {"sho.rt", "go/a/b/plain/x", "go/a/b*"},
		{"sho.rt", "go/ä", "go*"}, {"sho.rt", "go/" + strings.Repeat("x", 9000), "go*"},
		{"sho.rt", strings.Repeat("go/", 3000), "go*"}, {"sho.rt", "gox", ""}, {"sho.rt", "gox/y", ""},
		{"sho.rt", "GO/x", ""}, {"sho.rt", "GO", "https://go"}, {"sho.rt", "go%2Fx", ""}, {"sho.rt", "go&x/y", "https://go"},
		{"sho.rt", "go/x&y", "go*"}, {"sho.rt", "go/x.", "go*"}, {"sho.rt", "left/x", "left*"},
		{"sho.rt", "none/x", ""}, {"sho.rt", "none/", "https://none"}, {"sho.rt", "plain/x", ""},
		{"sho.rt", "plain/", "https://plain"}, {"sho.rt", "go/PLAIN", "go*"}, {"sho.rt", "plain/x/y", ""},
		{"sho.rt", "1/2/3/4/5/6/7/8/x", "1/2/3/4/5/6/7/8*"}, {"sho.rt", "1/2/3/4/5/6/7/8/9/x", "1/2/3/4/5/6/7/8*"},
		{"sho.rt", "1/2/3/4/5/6/7/8/9", "https://1.2.3.4.5.6.7.8.9"}, {"sho.rt", "1/2/3/4/5/6/7", ""},
		{"sho.rt", "own/x", ""}, {"go.example.com", "own/x", "own*"}, {"go.example.com", "go/x", ""},
		{"none.example.com", "go/x", ""}, {"sho.rt", "/x", ""}, {"sho.rt", "/go/x", ""},
	}
	for round := range 2 { // from the store, then from memory
		for _, c := range cases {
			r := e.try(netip.Addr{}, c.host, c.path, now)
			if round == 1 && r.lookup != nil {
				t.Errorf("%.50q on %s is looked up again", c.path, c.host)
			}
			if got := found(t, r); got != c.want {
				t.Errorf("%.50q on %s: %q, want %q", c.path, c.host, got, c.want)
			}
		}
	}
}

// An unknown path costs one query and one look-up of a client's quota, however many segments it has.
func TestUnknownPathsCostOneQuery(t *testing.T) {
	now, client := time.Now(), netip.MustParseAddr("192.0.2.1")
	for _, mode := range []schema.PathMode{schema.PathNone, schema.PathAppend} {
		e := newEnv(t, nil)
		e.pathLink(t, 0, "go", "https://go", mode)
		e.link(t, 0, "go/beneath", "https://beneath")
		e.want(t, "sho.rt", "go", now, "https://go", "")
		paths := 0
		for ; ; paths++ {
			path := fmt.Sprintf("go/%d%s", paths, strings.Repeat("/x", paths%20))
			before := e.store.queries.Load()
			_, code := e.resolveFor(client, "sho.rt", path, now)
			if code == tooMany {
				break
			}
			_, _ = e.resolveFor(client, "sho.rt", path, now)
			testkit.Equal(t, "queries for "+path, e.store.queries.Load()-before, 1)
		}
		testkit.Equal(t, "paths", paths, 10*e.cfg.MaxUnknownRate)
	}
}

// Paths behind a cached name cost no look-up while no name lies beneath it, also while the store is down.
func TestPathsOfCachedNamesCostNothing(t *testing.T) {
	now, client := time.Now(), netip.MustParseAddr("192.0.2.1")
	e := newEnv(t, nil)
	e.pathLink(t, 0, "go", "https://go", schema.PathAppend)
	e.pathLink(t, 0, "go/a/b", "https://b", schema.PathAppend)
	e.want(t, "sho.rt", "go", now, "https://go", "")
	e.want(t, "sho.rt", "go/a/b", now, "https://b", "")
	lookups := e.store.lookups.Load()
	ask := func(when string, at time.Time) {
		t.Helper()
		for i := range 1000 {
			path := fmt.Sprintf("go/a/b/%s/%d", when, i)
			r := e.try(client, "sho.rt", path, at)
			if r.lookup != nil {
				t.Fatalf("%q is looked up", path)
			}
			testkit.Equal(t, path, found(t, r), "go/a/b*")
		}
	}
	ask("fresh", now)
	e.wantLookups(t, lookups)
	e.store.inject(down)
	ask("stale", now.Add(time.Hour))
	e.store.inject(nil)
	e.link(t, 0, "go/a/b/c", "https://c")
	e.resolver.Drop(schema.Change{Hash: "go/a/b/c"})
	testkit.Equal(t, "c", found(t, e.try(client, "sho.rt", "go/a/b/c", now)), "https://c")
	testkit.Equal(t, "d", found(t, e.try(client, "sho.rt", "go/a/b/d", now)), "go/a/b*")
}

// A change of a name or of what it allows shows in every path that it stands for, and in no other name's.
func TestDropsOfPaths(t *testing.T) {
	now := time.Now()
	e := newEnv(t, nil)
	own := e.domain(t, "go.example.com", true)
	paths := []string{"go/a/b/c", "go/a/b/", "go/a/b.", "go/a", "Go/A/B", "go/ä"}
	want := func(host string, results ...string) {
		t.Helper()
		for round := range 2 {
			for i, path := range paths {
				r := e.try(netip.Addr{}, host, path, now)
				if round == 1 && r.lookup != nil {
					t.Errorf("%q is looked up again", path)
				}
				if got := found(t, r); got != results[i] {
					t.Errorf("%q on %s: %q, want %q", path, host, got, results[i])
				}
			}
		}
	}
	want("sho.rt", "", "", "", "", "", "")
	link := e.pathLink(t, 0, "go", "https://go", schema.PathAppend)
	e.resolver.Drop(schema.Change{Hash: "go"})
	want("sho.rt", "go*", "go*", "go*", "go*", "", "go*")
	e.link(t, 0, "go/a/b", "https://own")
	e.resolver.Drop(schema.Change{Hash: "go/a/b"})
	want("sho.rt", "go*", "go*", "go*", "go*", "https://own", "go*")
	e.pathLink(t, 0, "go/a", "https://a", schema.PathIgnore)
	e.resolver.Drop(schema.Change{Hash: "go/a"})
	want("sho.rt", "go/a*", "go/a*", "go/a*", "https://a", "https://own", "go*")
	testkit.Must(t, e.store.UpdateLink(t.Context(), &link,
		schema.LinkEdit{Behaviour: &schema.Behaviour{PathMode: schema.PathNone}}, now))
	e.resolver.Drop(schema.Change{Hash: "go"})
	want("sho.rt", "go/a*", "go/a*", "go/a*", "https://a", "https://own", "")

	want("go.example.com", "", "", "", "", "", "")
	e.link(t, own, "go", "https://there")
	e.resolver.Drop(schema.Change{DomainID: own, Hash: "go"})
	want("go.example.com", "", "", "", "", "", "")
}

// A domain says what becomes of paths behind names whose links leave it to the domain.
func TestPathsOfDomains(t *testing.T) {
	now := time.Now()
	for _, mode := range []schema.PathMode{schema.PathDefault, schema.PathNone, schema.PathIgnore, schema.PathAppend} {
		e := newEnv(t, func(cfg *resolve.Config) { cfg.Site.PathMode = mode })
		own := e.domain(t, "go.example.com", true)
		for _, domain := range []int64{0, own} {
			e.link(t, domain, "plain", "https://plain")
			e.pathLink(t, domain, "none", "https://none", schema.PathNone)
			e.pathLink(t, domain, "own", "https://own", schema.PathAppend)
		}
		want := func(host, when string, allowed bool) {
			t.Helper()
			plain := ""
			if allowed {
				plain = "plain*"
			}
			for path, want := range map[string]string{"plain/x": plain, "none/x": "", "own/x": "own*",
				"plain": "https://plain"} {
				testkit.Equal(t, fmt.Sprint(path, " on ", host, " ", when, mode),
					found(t, e.try(netip.Addr{}, host, path, now)), want)
			}
		}
		allowed := mode == schema.PathIgnore || mode == schema.PathAppend
		want("sho.rt", "by flag ", allowed)
		want("go.example.com", "before ", false)
		testkit.Must(t, e.store.SetSite(t.Context(), own, schema.Site{PathMode: mode}, schema.AppLinks{}))
		e.resolver.Drop(schema.Change{Host: "go.example.com"})
		want("go.example.com", "after ", allowed)
		testkit.Must(t, e.store.SetSite(t.Context(), own, schema.Site{}, schema.AppLinks{}))
		e.resolver.Drop(schema.Change{Host: "go.example.com"})
		want("go.example.com", "again ", false)
	}
}

// While the store is away, a path that was asked for before leads where it led, and others to the longest cached name.
func TestPathsWhileTheStoreIsDown(t *testing.T) {
	now := time.Now()
	e := newEnv(t, nil)
	e.pathLink(t, 0, "go", "https://go", schema.PathAppend)
	e.link(t, 0, "go/beneath", "https://beneath")
	e.want(t, "sho.rt", "go", now, "https://go", "")
	e.store.inject(down)
	for _, at := range []time.Time{now, now.Add(time.Hour)} {
		for _, path := range []string{"go/x", "go/x/y"} {
			for range 3 {
				testkit.Equal(t, path, found(t, e.try(netip.Addr{}, "sho.rt", path, at)), "go*")
			}
		}
	}
	e.want(t, "sho.rt", "other/x", now, "", schema.CodeUnavailable)
	e.resolver.Drop(schema.Change{Hash: "go"})
	testkit.Equal(t, "dropped", found(t, e.try(netip.Addr{}, "sho.rt", "go/x", now)), "go*")
	e.store.inject(nil)
	later := now.Add(2*time.Hour + e.cfg.LookupTimeout)
	testkit.Equal(t, "beneath", found(t, e.try(netip.Addr{}, "sho.rt", "go/beneath", later)), "https://beneath")
	testkit.Equal(t, "back", found(t, e.try(netip.Addr{}, "sho.rt", "go/x", later)), "go*")
}

// expected returns what found has to return for a path without capitals and additions, by the links that exist.
func expected(links map[string]schema.PathMode, path string) string {
	if _, ok := links[path]; ok {
		return "https://" + path
	}
	for end := len(path); end > 0; {
		if end = strings.LastIndexByte(path[:end], '/'); end < 0 {
			break
		}
		if mode := links[path[:end]]; mode == schema.PathAppend || mode == schema.PathIgnore {
			return path[:end] + "*"
		}
	}
	return ""
}

// Whatever changes while visitors come, each visitor after a change sees it, in each path.
func TestPathsFollowChanges(t *testing.T) {
	e := newEnv(t, nil)
	names := []string{"a", "a/b", "a/b/c", "a/b/c/d", "b", "b/c", "a.b", "a.b/c"}
	paths := append([]string{"a/x", "a/b/x", "a/b/c/x", "a/b/c/d/x/y", "b/x", "b/c/d", "a.b/x", "c", "c/d"}, names...)
	stop, stopped := make(chan struct{}), make(chan struct{})
	for range 2 { // visitors, at whose look-ups changes happen
		go func() {
			defer func() { stopped <- struct{}{} }()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					_, _ = e.resolver.Resolve([]byte("sho.rt"), []byte(paths[i%len(paths)]), netip.Addr{}, time.Now())
				}
			}
		}()
	}
	links, created := map[string]schema.PathMode{}, map[string]*schema.Link{}
	modes := []schema.PathMode{schema.PathDefault, schema.PathNone, schema.PathIgnore, schema.PathAppend}
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		name, mode := names[random.IntN(len(names))], modes[random.IntN(len(modes))]
		if link := created[name]; link == nil {
			link := e.pathLink(t, 0, name, "https://"+name, mode)
			created[name] = &link
		} else {
			testkit.Must(t, e.store.UpdateLink(t.Context(), link,
				schema.LinkEdit{Behaviour: &schema.Behaviour{PathMode: mode}}, time.Now()))
		}
		links[name] = mode
		e.resolver.Drop(schema.Change{Hash: name})
		for _, path := range paths {
			if got := found(t, e.try(netip.Addr{}, "sho.rt", path, time.Now())); got != expected(links, path) {
				t.Fatalf("%q after %q became %q: %q, want %q", path, name, mode, got, expected(links, path))
			}
		}
	}
	close(stop)
	<-stopped
	<-stopped
}

// Restored names answer the paths behind them, unless a name beneath has changed since.
func TestRestartOfPaths(t *testing.T) {
	now := time.Now()
	e := newSavedEnv(t)
	own := e.domain(t, "go.example.com", true)
	testkit.Must(t, e.store.SetSite(t.Context(), own, schema.Site{PathMode: schema.PathIgnore}, schema.AppLinks{}))
	e.pathLink(t, 0, "go", "https://go", schema.PathAppend)
	e.pathLink(t, 0, "a/b", "https://b", schema.PathAppend)
	e.pathLink(t, 0, "none", "https://none", schema.PathNone)
	e.link(t, own, "plain", "https://plain")
	want := func(e *env, results map[string]string) {
		t.Helper()
		for path, want := range results {
			host, path, _ := strings.Cut(path, "/")
			r := e.try(netip.Addr{}, host, path, now)
			if want == "unavailable" {
				r.want(t, "", schema.CodeUnavailable)
				continue
			}
			testkit.Equal(t, path, found(t, r), want)
		}
	}
	all := map[string]string{"sho.rt/go/x": "go*", "sho.rt/a/b/c": "a/b*", "sho.rt/a/b": "https://b", "sho.rt/none/x": "",
		"go.example.com/plain/x": "plain*"}
	want(e, all)
	e.resolver.Reached(somePosition, true)
	e.store.inject(down)
	e.restart(t)
	all["sho.rt/none/x"] = "unavailable"
	want(e, all)
	e.resolver.Drop(schema.Change{Hash: "go/new"})
	all["sho.rt/go/x"] = "unavailable"
	want(e.kill(t, "link/0/go/new"), all)
}

// The longest name and its rests, from memory, cost no allocation.
func TestPathsDoNotAllocate(t *testing.T) {
	now := time.Now()
	e := newEnv(t, nil)
	e.pathLink(t, 0, "go", "https://go", schema.PathAppend)
	host, path := []byte("sho.rt"), []byte("go/a/b/c")
	ask := func() {
		if target, _, err := e.resolver.TryResolve(host, path, netip.Addr{}, now, nil, nil); err != nil ||
			target.Stop != resolve.Behind {
			t.Fatal(target, err)
		}
	}
	_, err := e.resolver.Resolve(host, path, netip.Addr{}, now)
	testkit.Must(t, err)
	if n := testing.AllocsPerRun(1000, ask); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// badRests are paths that may not follow a name, and otherRests look like them.
var (
	badRests = []string{"/", "//", "/x", "x//", "x//y", ".", "..", "./x", "../x", "x/.", "x/..", "x/./y", "x/../y", "%2e",
		"%2E%2e", ".%2e/x", "x/%2E./y", "\\", "x\\y", "%5C", "x/%5cy", "%2F", "%2Fx", "%2f%2fx", "x/%2Fy", "x%2F..%2Fy",
		"..%2Fx", "x%2F.", "x/..%2F"}
	otherRests = []string{"", "x", "x/", "x/y", "x/y/", "...", ".x", "x.", "..x", "x..", "x/...", "%2E%2E%2E", "x%2Fy",
		"x%2F", "%252F", "%252Fx", "%255C", "%252e%252e", "%", "%2", "%zz", "%00", "%0A", "%E4", "@x", ":80", "x@y:1",
		";a", "&b", "a=b", "http:x", "\t.\t", "\n"}
)

func TestValidRest(t *testing.T) {
	for _, rest := range badRests {
		testkit.Equal(t, rest, resolve.ValidRest([]byte(rest)), false)
	}
	for _, rest := range otherRests {
		testkit.Equal(t, rest, resolve.ValidRest([]byte(rest)), true)
	}
}

// FuzzPath checks for any path behind a name that
//   - a link leads to the origin that it leads to without the path, as browsers and as Go read it,
//   - appended, the path does not leave the folder that the link leads to, nor change its query and fragment,
//   - in a pattern, it changes nothing but the places of the pattern,
//   - no location has more than 8 KiB, or a byte that no header may have.
func FuzzPath(f *testing.F) {
	targets := []string{"https://a.example", "https://a.example/", "https://a.example?x=y", "https://a.example#f?x",
		"https://a.example/b/c?d=e#f", "http://a.example:8080/ü/", "https://[::1]/x", "https://a.example/{path}",
		"https://a.example?{path}", "https://a.example/x/{path}/y?q={path}&r#{path}", "https://a.example/{path}{path}",
		"https://a.example/.{path}", "https://a.example#{path}", "https://bücher.example/{path}", "https://a.example\\b"}
	for i, rest := range append(badRests, otherRests...) {
		f.Add(targets[i%len(targets)], rest)
	}
	for _, target := range targets {
		f.Add(target, "x")
		f.Add(target, "a%2Fb%3Fc%23d/e?f#g")
		f.Add(target, strings.Repeat("x/", 5000))
	}
	f.Fuzz(func(t *testing.T, longURL, rest string) {
		if u, err := url.Parse(longURL); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" ||
			u.User != nil || len(longURL) > schema.MaxURLLen || !resolve.ValidRest([]byte(rest)) {
			return
		}
		pattern := schema.HasPathPattern(longURL)
		location, without, ok := resolve.PlaceRest(longURL,
			schema.Behaviour{PathMode: schema.PathAppend, Pattern: pattern}, []byte(rest))
		switch {
		case !ok:
			if len(without)+3*len(rest) < resolve.MaxLocation && !pattern {
				t.Errorf("%q behind %q is too long", rest, longURL)
			}
			return
		case len(location) > resolve.MaxLocation:
			t.Fatalf("%d bytes", len(location))
		}
		if strings.ContainsFunc(string(location), func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
			t.Fatalf("%q", location)
		}
		to, from := asBrowsers(string(location)), asBrowsers(string(without))
		if to.origin != from.origin {
			t.Fatalf("%q behind %q leads to %q", rest, longURL, location)
		}
		if u, err := url.Parse(string(location)); err == nil {
			if v, err := url.Parse(string(without)); err == nil && (u.Host != v.Host || u.Scheme != v.Scheme || u.User != nil) {
				t.Fatalf("%q behind %q leads to %q", rest, longURL, location)
			}
		}
		if pattern {
			for place := range strings.SplitSeq(strings.SplitN(string(without), "#", 2)[0], schema.PathPattern) {
				if !strings.Contains(string(location), place) {
					t.Errorf("%q behind %q leads to %q", rest, longURL, location)
				}
			}
			return
		}
		if strings.Contains("/"+from.path, "/.") {
			return // the link itself leaves its folder
		}
		if to.rest != from.rest || !strings.HasPrefix(path.Clean("/"+to.path)+"/", path.Clean("/"+from.path)) {
			t.Errorf("%q behind %q leads to %q", rest, longURL, location)
		}
	})
}

// browserURL is a URL as browsers read it (https://url.spec.whatwg.org).
type browserURL struct{ origin, path, rest string }

func asBrowsers(text string) (u browserURL) {
	text = strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(text)
	if i := strings.IndexAny(text, "?#"); i >= 0 {
		text, u.rest = text[:i], text[i:]
	}
	text = strings.ReplaceAll(text, "\\", "/")
	scheme, text, _ := strings.Cut(text, ":")
	text = strings.TrimLeft(text, "/")
	authority, path, _ := strings.Cut(text, "/")
	u.origin, u.path = strings.ToLower(scheme+"://"+authority), strings.NewReplacer("%2e", ".", "%2E", ".").Replace(path)
	return u
}
