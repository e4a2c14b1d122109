package schema_test

import (
	"net/url"
	"path"
	"strings"
	"testing"

	"linkstream/schema"
)

const alphabet = "23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

func TestNewHash(t *testing.T) {
	const draws = 20_000
	counts := make(map[rune]int)
	seen := make(map[string]bool)
	for range draws {
		hash := schema.NewHash()
		if len(hash) != schema.HashLen || !schema.ValidHash(hash) {
			t.Fatalf("hash %q", hash)
		}
		seen[hash] = true
		for _, c := range hash {
			counts[c]++
		}
	}
	t.Run("uses the whole alphabet and nothing else", func(t *testing.T) {
		for _, c := range alphabet {
			if counts[c] == 0 {
				t.Errorf("%q was never drawn", c)
			}
		}
		if len(counts) != len(alphabet) {
			t.Errorf("%d different characters, want %d", len(counts), len(alphabet))
		}
	})
	t.Run("uses every character equally often", func(t *testing.T) {
		// Pearson's chi-squared test: with 56 degrees of freedom, uniform characters exceed 140 less than once in 10^7 runs.
		want := float64(draws*schema.HashLen) / float64(len(alphabet))
		chi2 := 0.0
		for _, c := range alphabet {
			d := float64(counts[c]) - want
			chi2 += d * d / want
		}
		if chi2 > 140 {
			t.Fatalf("chi-squared %.0f; counts %v", chi2, counts)
		}
	})
	t.Run("does not repeat itself", func(t *testing.T) {
		// Among 20,000 of 57^7 hashes, two are equal about once in 10,000 runs, and two pairs practically never.
		if len(seen) < draws-1 {
			t.Fatalf("%d different hashes of %d", len(seen), draws)
		}
	})
}

func TestAppendAlias(t *testing.T) {
	for hash, want := range map[string]string{
		"Sale": "sale", "SUMMER-2026": "summer-2026", "A_b": "a_b", "ABCDEF0": "abcdef0", "ABCDEFL": "abcdefl",
		"ABCDEF-": "abcdef-",
		"AB":      "ab", "A.b": "a.b", "ABCDEFGHIJKLMNOPQRSTU": "abcdefghijklmnopqrstu", "Promo/2026": "promo/2026",
		"ABC/EFG": "abc/efg",
		"sale":    "", "ABCDEFG": "", "abcdefG": "", "A234567": "", "": "", "\u00c4bc": "", "A//b": "", "A/": "",
		strings.Repeat("A", 129): "",
	} {
		if alias, ok := schema.AppendAlias(nil, []byte(hash)); ok != (want != "") || ok && string(alias) != want {
			t.Errorf("%q stands for %q, %t, want %q", hash, alias, ok, want)
		}
	}
	for range 1000 {
		if hash := schema.NewHash(); strings.ToLower(hash) != hash {
			if alias, ok := schema.AppendAlias(nil, []byte(hash)); ok && !strings.ContainsAny(string(alias), "01l") {
				t.Errorf("%q stands for the automatic hash %q", hash, alias)
			}
		}
	}
}

// aliases are the rules of hashes, and of aliases on a custom domain: problem is "" if there is none.
var aliases = []struct{ alias, problem string }{
	{"a", ""}, {"Z9-_", ""}, {"a.b", ""}, {"a~", ""}, {"~", ""}, {"-", ""}, {"_", ""}, {"a/b", ""},
	{"a/b/c/d/e/f/g/h/i", ""}, {"Promo/2026.html", ""}, {"a/.b", ""}, {"a/..b", ""}, {"a./b", ""}, {"a../b", ""},
	{"a/...", "malformed"}, {"a/.../b", ""}, {"a..b", ""}, {"~a/-/_", ""}, {"index-1", ""},
	{"x/docs", ""}, {"docs-1", ""}, {"docs~", ""},
	{"docsy", ""}, {"x.docs", ""}, {strings.Repeat("x", 128), ""}, {strings.Repeat("x/", 63) + "xx", ""},

	{"", "malformed"}, {strings.Repeat("x", 129), "malformed"}, {"/", "malformed"}, {".", "malformed"},
	{"..", "malformed"}, {"/a", "malformed"}, {"a/", "malformed"}, {".a", "malformed"}, {"a.", "malformed"},
	{"a//b", "malformed"}, {"a/./b", "malformed"}, {"a/../b", "malformed"}, {"a/..", "malformed"}, {"a/.", "malformed"},
	{"../a", "malformed"}, {"./a", "malformed"}, {"a b", "malformed"}, {"a+", "malformed"}, {"a%41", "malformed"},
	{"a%2Fb", "malformed"}, {"a\\b", "malformed"}, {"a?b", "malformed"}, {"a#b", "malformed"}, {"a&b", "malformed"},
	{"a:b", "malformed"}, {"a@b", "malformed"}, {"a,b", "malformed"}, {"a;b", "malformed"}, {"a'b", "malformed"},
	{"é", "malformed"}, {"a\x00", "malformed"}, {"\xff", "malformed"}, {"abc\n", "malformed"}, {"a\u2024b", "malformed"},

	{"docs", "reserved"}, {"Docs", "reserved"}, {"DOCS/x", "reserved"}, {"docs.x", "reserved"},
	{"robots.txt", "reserved"}, {"Robots.TXT", "reserved"}, {"favicon.ico", "reserved"}, {"api/v1/links", "reserved"},
	{"api.x/y", "reserved"}, {"HealthZ", "reserved"}, {"index.html", "reserved"}, {"docs./x", "reserved"},
}

func problemOf(alias string, onDefault bool) string {
	problem := schema.AliasProblem(alias, onDefault)
	for text, kind := range map[string]string{"must have 1 to 128": "malformed", "is reserved": "reserved",
		"at least 3": "short"} {
		if strings.Contains(problem, text) {
			return kind
		}
	}
	return problem
}

func TestAliasProblem(t *testing.T) {
	for _, c := range aliases {
		if got := problemOf(c.alias, false); got != c.problem {
			t.Errorf("%q has the problem %q, want %q", c.alias, got, c.problem)
		}
		want := c.problem
		if want == "" && len(c.alias) < 3 {
			want = "short"
		}
		if got := problemOf(c.alias, true); got != want {
			t.Errorf("%q on the default domain has the problem %q, want %q", c.alias, got, want)
		}
		valid := c.problem != "malformed"
		if schema.ValidHash(c.alias) != valid || schema.ValidHash([]byte(c.alias)) != valid {
			t.Errorf("%q is not a valid hash, or is one", c.alias)
		}
	}
	for b := range 256 {
		alias := "a" + string([]byte{byte(b)}) + "c"
		valid := strings.IndexByte(alphabet+"01IOl-_.~/", byte(b)) >= 0
		if got := schema.AliasProblem(alias, true) == ""; got != valid {
			t.Errorf("%q: %v", alias, got)
		}
	}
}

// FuzzAlias holds that an alias is the path of one resource of the edge, and a custom_alias an alias.
func FuzzAlias(f *testing.F) {
	for _, c := range aliases {
		f.Add(c.alias)
	}
	f.Fuzz(func(t *testing.T, alias string) {
		valid := schema.ValidHash(alias)
		if schema.ValidHash([]byte(alias)) != valid {
			t.Fatalf("%q is valid as a string or as bytes only", alias)
		}
		problem := schema.AliasProblem(alias, false)
		if (problem == "") != (valid && !schema.ReservedAlias(alias)) {
			t.Fatalf("%q: %s", alias, problem)
		}
		if schema.ValidCustomAlias(alias) && !valid {
			t.Fatalf("%q is a custom alias, but no alias", alias)
		}
		if !valid {
			return
		}
		if clean := path.Clean("/" + alias); clean != "/"+alias || len(alias) > schema.MaxAliasLen {
			t.Fatalf("%q is the path %q", alias, clean)
		}
		if u, err := url.Parse("https://sho.rt/" + alias); err != nil || u.Path != "/"+alias || u.RawPath != "" ||
			u.String() != "https://sho.rt/"+alias {
			t.Fatalf("%q: %v, %v", alias, u, err)
		}
		if change, ok := schema.ParseChange(schema.Change{DomainID: 1, Hash: alias}.Key()); !ok || change.Hash != alias {
			t.Fatalf("%q becomes the change %+v", alias, change)
		}
	})
}

func TestValidCustomAlias(t *testing.T) {
	for _, c := range []struct {
		alias string
		want  bool
	}{
		{"", false}, {"ab", false}, {"abc", true}, {"a-b_9", true}, {"---", true}, {"123", true},
		{strings.Repeat("x", 20), true}, {strings.Repeat("x", 21), false},
		{"Abc", false}, {"abC", false}, {"a c", false}, {"a.c", false}, {"a/c", false}, {"äbc", false}, {"abc\n", false},
		{"a~c", false},
	} {
		if got := schema.ValidCustomAlias(c.alias); got != c.want {
			t.Errorf("ValidCustomAlias(%q) = %v", c.alias, got)
		}
	}
}

func TestReservedAlias(t *testing.T) {
	for _, path := range []string{"api", "dashboard", "healthz", "readyz", "metrics", "robots", "favicon"} {
		if !schema.ReservedAlias(path) {
			t.Errorf("%q is a path of the service and not reserved", path)
		}
	}
	for _, alias := range []string{"", "apis", "my-link"} {
		if schema.ReservedAlias(alias) {
			t.Errorf("%q is reserved", alias)
		}
	}
}
