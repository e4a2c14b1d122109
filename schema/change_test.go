package schema_test

import (
	"testing"

	"linkstream/schema"
)

func TestChange(t *testing.T) {
	t.Run("ParseChange is the inverse of Key", func(t *testing.T) {
		for _, want := range []schema.Change{{Host: "go.example.org"}, {Hash: "abc"}, {DomainID: 12, Hash: "a-b_C"},
			{AccountID: 7}} {
			if got, ok := schema.ParseChange(want.Key()); !ok || got != want {
				t.Errorf("%q: got %+v, %v", want.Key(), got, ok)
			}
		}
	})
	t.Run("different changes have different keys", func(t *testing.T) {
		keys := map[string]bool{}
		changes := []schema.Change{{Host: "a"}, {Host: "A"}, {Hash: "a"}, {Hash: "A"}, {DomainID: 1, Hash: "a"},
			{AccountID: 1}}
		for _, c := range changes {
			keys[c.Key()] = true
		}
		if len(keys) != len(changes) {
			t.Errorf("%d keys for %d changes", len(keys), len(changes))
		}
	})
	t.Run("ParseChange rejects other keys", func(t *testing.T) {
		for _, key := range []string{"", "host/", "host", "link/1", "link/x/abc", "link//abc", "link/1/a b",
			"other/1/abc", "account/",
			"account/0", "account/x", "account"} {
			if got, ok := schema.ParseChange(key); ok {
				t.Errorf("%q: got %+v", key, got)
			}
		}
	})
}

// FuzzParseChange checks that the change in a record's key has a key of its own.
func FuzzParseChange(f *testing.F) {
	for _, key := range []string{"host/go.example.org", "link/1/abc", "link/-0/abc", "link/1/a/b", "host//",
		"link/9223372036854775808/a", "\xff/"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		c, ok := schema.ParseChange(key)
		if !ok {
			return
		}
		if again, ok := schema.ParseChange(c.Key()); !ok || again != c {
			t.Errorf("%q is %+v, and its key is that of %+v", key, c, again)
		}
	})
}
