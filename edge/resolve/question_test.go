package resolve_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"linkstream/edge/resolve"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// additions are what people, editors and chats add to an address.
var additions = []string{"/", ".", ",", ";", ":", "!", "?", ")", "]", "}", ">", "'", "\"", "*", "”", "’", "»", "…",
	" ", "\t", "\r\n", "\u00a0", "\u3000", "\u200b", "\u200c", "\u200d", "\u200e", "\u2060", "\ufeff", "\u00ad", "\ufe0f",
	"/.", "/).", "...", "?!\")", "&utm_source=x", "&", "&amp;x=1", ".&x=?", "/&x=.", "&x&y", "/ ,\u200b\u200b"}

// others are additions that are left as they are.
var others = []string{"//", "./", ".....", "/./", "\\", "\x00", "\xff", "\xe2\x80", "?a&b", "?&", "=", "(", "“",
	"%20", "+."}

func TestAsTyped(t *testing.T) {
	for _, addition := range additions {
		testkit.Equal(t, addition, string(resolve.AsTyped([]byte("go-doc"+addition))), "go-doc")
	}
	for _, addition := range append(others, "") {
		if got := string(resolve.AsTyped([]byte("go-doc" + addition))); addition != "" && got == "go-doc" {
			t.Errorf("%q is left out", addition)
		}
	}
	for path, want := range map[string]string{
		"": "", "/": "", ".": "", "&x": "", "a/b/": "a/b", "a.b": "a.b", "a.b.": "a.b", "a&b/c": "a", "a?b&c": "a?b&c",
		"go-doc.....": "go-doc.", "go-doc./": "go-doc.", "go-doc+": "go-doc+", "go-doc+.": "go-doc+",
	} {
		testkit.Equal(t, path, string(resolve.AsTyped([]byte(path))), want)
	}
}

// FuzzAsTyped checks for any path that
//   - a name stays as it is, and nothing but the end of a path goes,
//   - what goes is one slash, then at most four characters of which none can be in a name but a dot, then nothing or a
//     & that no ? precedes and what follows it,
//   - nothing goes that does not have to.
func FuzzAsTyped(f *testing.F) {
	for _, addition := range append(append([]string{""}, additions...), others...) {
		f.Add("go-doc" + addition)
	}
	f.Fuzz(func(t *testing.T, path string) {
		typed := string(resolve.AsTyped([]byte(path)))
		gone, ok := strings.CutPrefix(path, typed)
		if !ok || schema.ValidHash(path) && gone != "" {
			t.Fatalf("%q becomes %q", path, typed)
		}
		before, _, cut := strings.Cut(gone, "&")
		if cut && strings.Contains(typed+before, "?") && strings.Index(path, "?") < strings.Index(path, "&") ||
			!cut && strings.Contains(path, "&") && !strings.Contains(path[:strings.Index(path, "&")], "?") {
			t.Errorf("%q becomes %q: the & is not respected", path, typed)
		}
		end, slash := strings.CutPrefix(before, "/")
		if utf8.RuneCountInString(end) > 4 || strings.ContainsAny(end, "/_~-+") || !utf8.ValidString(end) {
			t.Errorf("%q becomes %q", path, typed)
		}
		if !slash && strings.HasSuffix(typed, "/") {
			t.Errorf("%q becomes %q, which ends with a slash", path, typed)
		}
		for _, c := range end {
			if schema.ValidHash(string(c)) {
				t.Errorf("%q becomes %q", path, typed)
			}
		}
	})
}

// A path that people have typed stands for the same link in every way that a request can take, on any host, and costs
// no look-up that a name would not cost.
func TestTypedPaths(t *testing.T) {
	now := time.Now()
	e := newEnv(t, nil)
	own := e.domain(t, "go.example.com", true)
	e.link(t, 0, "go-doc", "https://doc.example/")
	e.link(t, 0, "aBcDeFg", "https://automatic.example/")
	e.link(t, 0, "Both", "https://capitals.example/")
	e.link(t, 0, "both", "https://lower.example/")
	e.link(t, own, "own", "https://own.example/")
	cases := []struct{ host, path, location string }{
		{"sho.rt", "Go-Doc.", "https://doc.example/"}, {"sho.rt", "GO-DOC/&x=1", "https://doc.example/"},
		{"sho.rt", "aBcDeFg).", "https://automatic.example/"}, {"sho.rt", "ABCDEFG.", ""}, {"sho.rt", "abcdefg/", ""},
		{"sho.rt", "Both,", "https://capitals.example/"}, {"sho.rt", "BOTH,", "https://lower.example/"},
		{"sho.rt", "own.", ""}, {"go.example.com", "own.", "https://own.example/"},
		{"go.example.com", "OWN/", "https://own.example/"}, {"none.example.com", "own.", ""},
		{"sho.rt", ".", ""}, {"sho.rt", "go-doc.x", ""}, {"sho.rt", strings.Repeat("a", 1000) + ".", ""},
	}
	for _, addition := range additions {
		cases = append(cases, struct{ host, path, location string }{"sho.rt", "go-doc" + addition, "https://doc.example/"})
	}
	for _, addition := range others {
		cases = append(cases, struct{ host, path, location string }{"sho.rt", "go-doc" + addition, ""})
	}
	for round := range 2 { // from the store, then from memory
		for _, c := range cases {
			r := e.try(netip.Addr{}, c.host, c.path, now)
			if round == 1 && r.lookup != nil {
				t.Errorf("%q on %s is looked up again", c.path, c.host)
			}
			code := schema.Code("")
			if c.location == "" {
				code = schema.CodeNotFound
			}
			r.want(t, c.location, code)
			e.want(t, c.host, c.path, now, c.location, code)
		}
	}
	lookups := e.store.lookups.Load()
	e.want(t, "sho.rt", "None.", now, "", schema.CodeNotFound)
	e.wantLookups(t, lookups+2)
	e.link(t, 0, "none", "https://new.example/")
	e.resolver.Drop(schema.Change{Hash: "none"})
	e.want(t, "sho.rt", "None.", now, "https://new.example/", "")
	e.wantLookups(t, lookups+4) // a change of none may also change what None stands for
	testkit.Must(t, e.store.SetTakenDown(t.Context(), 0, "go-doc", true))
	e.resolver.Drop(schema.Change{Hash: "go-doc"})
	e.wantActive(t, "Go-Doc/.", now, false)
}

// A client is refused after as many unknown paths as unknown names, however they are spelled.
func TestUnknownTypedPathsAreBounded(t *testing.T) {
	now, client := time.Now(), netip.MustParseAddr("192.0.2.1")
	e := newEnv(t, nil)
	paths := 0
	for ; ; paths++ {
		hash := schema.NewHash()[:5] + []string{".", "/", "X,", "&x"}[paths%4]
		if _, code := e.resolveFor(client, "sho.rt", hash, now); code == tooMany {
			break
		}
	}
	if most := 10 * e.cfg.MaxUnknownRate; paths > most+1 || e.store.lookups.Load() > 2*int64(paths) {
		t.Errorf("%d unknown paths, %d look-ups, want at most %d and twice as many", paths, e.store.lookups.Load(), most)
	}
}
