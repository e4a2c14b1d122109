package schema_test

import (
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
		"sale":    "", "AB": "", "ABCDEFG": "", "abcdefG": "", "A234567": "", "A.b": "", "ABCDEFGHIJKLMNOPQRSTU": "", "": "",
		"\u00c4bc": "",
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

func TestValidHash(t *testing.T) {
	for _, c := range []struct {
		hash string
		want bool
	}{
		{"", false}, {"a", true}, {"Z9-_", true}, {strings.Repeat("x", 20), true}, {strings.Repeat("x", 21), false},
		{"a b", false}, {"a/b", false}, {"a.b", false}, {"é", false}, {"a\x00", false}, {"\xff", false}, {"a%41", false},
	} {
		if got := schema.ValidHash(c.hash); got != c.want {
			t.Errorf("ValidHash(%q) = %v", c.hash, got)
		}
		if got := schema.ValidHash([]byte(c.hash)); got != c.want {
			t.Errorf("ValidHash([]byte(%q)) = %v", c.hash, got)
		}
	}
	t.Run("accepts exactly the characters of hashes and aliases", func(t *testing.T) {
		for b := range 256 {
			want := strings.IndexByte(alphabet+"01IOl-_", byte(b)) >= 0
			if got := schema.ValidHash([]byte{byte(b)}); got != want {
				t.Errorf("ValidHash(%q) = %v", []byte{byte(b)}, got)
			}
		}
	})
}

func TestValidAlias(t *testing.T) {
	for _, c := range []struct {
		alias string
		want  bool
	}{
		{"", false}, {"ab", false}, {"abc", true}, {"a-b_9", true}, {"---", true}, {"123", true},
		{strings.Repeat("x", 20), true}, {strings.Repeat("x", 21), false},
		{"Abc", false}, {"abC", false}, {"a c", false}, {"a.c", false}, {"a/c", false}, {"äbc", false}, {"abc\n", false},
	} {
		if got := schema.ValidAlias(c.alias); got != c.want {
			t.Errorf("ValidAlias(%q) = %v", c.alias, got)
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
