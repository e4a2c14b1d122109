package shorten_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/api/shorten"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

func blocklistFiles(t *testing.T, contents ...string) (paths []string) {
	t.Helper()
	for i, content := range contents {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("hosts%d", i))
		testkit.Must(t, os.WriteFile(path, []byte(content), 0o600))
		paths = append(paths, path)
	}
	return paths
}

func TestBlocklist(t *testing.T) {
	f := newFixture(t, "https://sho.rt",
		"# a comment", "0.0.0.0 bad.example # why", "127.0.0.1\tone.example two.example", "bare.example\r", "",
		"0.0.0.0 UPPER.Example.", "::1 bücher.example", "198.51.100.7", "2001:DB8::7",
		"127.0.0.1 localhost", "0.0.0.0 com", "||adblock.example^", "...", "#")
	for name, urls := range map[string][]string{
		"every format of line": {"http://bad.example", "http://one.example", "http://two.example", "http://bare.example",
			"http://upper.example", "http://198.51.100.7/", "http://[2001:db8::7]/"},
		"subdomains":                       {"http://www.bad.example", "http://a.b.c.bad.example/"},
		"case, port, path, dot at the end": {"HTTPS://BAD.example.:8443/x?y"},
		"names outside ASCII":              {"http://bücher.example", "http://xn--bcher-kva.example", "http://ｂad.example"},
		"other forms of an address":        {"http://[::ffff:c633:6407]/", "http://[2001:db8:0:0::7]/"},
	} {
		t.Run("blocks "+name, func(t *testing.T) {
			for _, longURL := range urls {
				_, err := f.create(t, longURL, "", 0)
				if schema.ErrorCode(err) != schema.CodeUnsafeURL {
					t.Errorf("%q: %v", longURL, err)
				}
			}
		})
	}
	t.Run("blocks nothing else", func(t *testing.T) {
		for _, longURL := range []string{"http://example", "http://notbad.example", "http://bad.example.com",
			"http://localhost/", "http://example.com", "http://0.0.0.0/", "http://a.b/?u=http://bad.example"} {
			_, err := f.create(t, longURL, "", 0)
			testkit.Must(t, err)
		}
	})
	t.Run("is consulted after the fields are validated", func(t *testing.T) {
		_, err := f.create(t, "http://bad.example", "NO", 0)
		wantInvalid(t, err, "custom_alias")
	})
	t.Run("is consulted before the alias is taken", func(t *testing.T) {
		_, err := f.create(t, "http://fine.example", "used", 0)
		testkit.Must(t, err)
		_, err = f.create(t, "http://bad.example", "used", 0)
		testkit.WantCode(t, err, schema.CodeUnsafeURL)
	})
}

func TestOpenBlocklistReportsUnreadableFiles(t *testing.T) {
	for _, path := range []string{filepath.Join(t.TempDir(), "missing"), t.TempDir(),
		blocklistFiles(t, strings.Repeat("x", 1<<20))[0]} {
		if _, err := shorten.OpenBlocklist([]string{path}, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%q was read", path)
		}
	}
}

func TestBlocklistFollowsChangesOfItsFiles(t *testing.T) {
	paths := blocklistFiles(t, "first.example", "second.example")
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		list, err := shorten.OpenBlocklist(paths, slog.New(slog.NewTextHandler(&logged, nil)))
		testkit.Must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); list.Run(ctx) }()
		blocks := func(host string) bool {
			time.Sleep(6 * time.Second) // of the bubble's time: longer than the interval of the checks
			synctest.Wait()
			return shorten.Blocks(list, host)
		}
		check := func(what, host string, want bool) {
			t.Helper()
			if got := blocks(host); got != want {
				t.Errorf("%s: blocks %q: %v", what, host, got)
			}
		}
		check("at first", "first.example", true)
		testkit.Must(t, os.WriteFile(paths[0], []byte("changed.example"), 0o600))
		check("after a change", "changed.example", true)
		check("after a change", "first.example", false)
		check("after a change of the other file", "second.example", true)

		testkit.Must(t, os.Remove(paths[0]))
		testkit.Must(t, os.WriteFile(paths[1], []byte("unseen.example"), 0o600))
		check("while a file is missing", "changed.example", true)
		check("while a file is missing", "unseen.example", false)
		if n := strings.Count(logged.String(), "level=ERROR"); n != 1 {
			t.Errorf("logged %d errors:\n%s", n, &logged)
		}
		testkit.Must(t, os.WriteFile(paths[0], []byte("again.example"), 0o600))
		check("after it is back", "again.example", true)
		check("after it is back", "unseen.example", true)
		cancel()
		<-done
	})
}

func FuzzParseHosts(f *testing.F) {
	for _, s := range []string{"0.0.0.0 bad.example # x\n", "bare.example", "::1 a.b c.d\r\n", "1.2.3.4", "\ufeff#",
		"bücher.example", "0.0.0.0\x00a.b", "a.b\n\n\n.", "[::1]"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		hosts, err := shorten.ParseHosts(bytes.NewReader(file))
		if err != nil {
			return
		}
		// Hosts are in canonical form: read again, each is unchanged.
		for _, host := range hosts {
			again, err := shorten.ParseHosts(strings.NewReader(host))
			if err != nil || !slices.Equal(again, []string{host}) {
				t.Fatalf("host %q is read as %v, %v", host, again, err)
			}
		}
	})
}
