package blocklist_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/schema"
	"linkstream/schema/blocklist"
	"linkstream/schema/testkit"
)

// blocklistFiles returns the paths of files with the contents, separated by commas.
func blocklistFiles(t *testing.T, contents ...string) string {
	t.Helper()
	var paths []string
	for i, content := range contents {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("hosts%d", i))
		testkit.Must(t, os.WriteFile(path, []byte(content), 0o600))
		paths = append(paths, path)
	}
	return strings.Join(paths, ",")
}

func open(t *testing.T, lines ...string) *blocklist.List {
	t.Helper()
	list, err := blocklist.Open(blocklistFiles(t, strings.Join(lines, "\n")), slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	return list
}

func TestBlocks(t *testing.T) {
	list := open(t, "# a comment", "0.0.0.0 bad.example # why", "127.0.0.1\tone.example two.example", "bare.example\r", "",
		"0.0.0.0 UPPER.Example.", "::1 bücher.example", "198.51.100.7", "2001:DB8::7",
		"127.0.0.1 localhost", "0.0.0.0 com", "||adblock.example^", "...", "#")
	for _, host := range []schema.Host{"bad.example", "one.example", "two.example", "bare.example", "upper.example",
		"198.51.100.7", "2001:db8::7", "www.bad.example", "a.b.c.bad.example", "xn--bcher-kva.example"} {
		if !list.Blocks(host) {
			t.Errorf("%q is not blocked", host)
		}
	}
	for _, host := range []schema.Host{"example", "notbad.example", "bad.example.com", "localhost", "example.com",
		"0.0.0.0", "127.0.0.1", "::1", "8.51.100.7", ""} {
		if list.Blocks(host) {
			t.Errorf("%q is blocked", host)
		}
	}
	if (*blocklist.List)(nil).Blocks("bad.example") || open(t).Blocks("bad.example") {
		t.Error("a list without hosts blocks one")
	}
}

func TestOpenReportsUnreadableFiles(t *testing.T) {
	for _, path := range []string{filepath.Join(t.TempDir(), "missing"), t.TempDir(),
		blocklistFiles(t, strings.Repeat("x", 1<<20))} {
		if _, err := blocklist.Open(path, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%q was read", path)
		}
	}
}

func TestListFollowsChangesOfItsFiles(t *testing.T) {
	files := blocklistFiles(t, "first.example", "second.example")
	paths := strings.Split(files, ",")
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		list, err := blocklist.Open(files, slog.New(slog.NewTextHandler(&logged, nil)))
		testkit.Must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		changes := 0
		go func() { defer close(done); list.Run(ctx, func() { changes++ }) }()
		blocks := func(host string) bool {
			time.Sleep(6 * time.Second) // of the bubble's time: longer than the interval of the checks
			synctest.Wait()
			return list.Blocks(schema.Host(host))
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
		testkit.Equal(t, "changes", changes, 2)
	})
}

// FuzzParseHosts checks that the last entry of each line is blocked, in canonical form, if it is a host with a dot.
func FuzzParseHosts(f *testing.F) {
	for _, s := range []string{"0.0.0.0 bad.example # x\n", "bare.example", "::1 a.b c.d\r\n", "1.2.3.4", "\ufeff#",
		"bücher.example", "0.0.0.0\x00a.b", "a.b\n\n\n.", "[::1]"} {
		f.Add([]byte(s))
	}
	path := filepath.Join(f.TempDir(), "hosts")
	f.Fuzz(func(t *testing.T, file []byte) {
		testkit.Must(t, os.WriteFile(path, file, 0o600))
		list, err := blocklist.Open(path, slog.New(slog.DiscardHandler))
		if err != nil {
			testkit.Equal(t, "a line is too long", errors.Is(err, bufio.ErrTooLong), true)
			return
		}
		for line := range strings.Lines(string(file)) {
			line, _, _ = strings.Cut(line, "#")
			entries := strings.Fields(line)
			if len(entries) == 0 {
				continue
			}
			if host, err := schema.ParseHost(entries[len(entries)-1]); err == nil && strings.ContainsAny(string(host), ".:") {
				testkit.Equal(t, "blocked: "+string(host), list.Blocks(host), true)
			}
		}
	})
}
