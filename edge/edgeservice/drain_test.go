package edgeservice_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"linkstream/edge/edgeservice"
	"linkstream/edge/spool"
	"linkstream/schema"
	"linkstream/schema/filelock"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

// leave returns the configuration of a spool in which an edge has left clicks, on links 1 to n.
func leave(t *testing.T, n int64) spool.Config {
	t.Helper()
	cfg := spool.DefaultConfig()
	cfg.Dir, cfg.Lanes = t.TempDir(), 2
	s, err := spool.Open(cfg, slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	for link := int64(1); link <= n; link++ {
		s.Append(uint64(link), &schema.Click{LinkID: link, ClickedAt: time.UnixMilli(1_800_000_000_000)})
	}
	testkit.Must(t, s.Close())
	return cfg
}

// segments returns the paths of the segments in a spool's directory.
func segments(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*.segment"))
	testkit.Must(t, err)
	return paths
}

func TestDrain(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	broker := streamtest.StartBroker(t)
	client := broker.CreateTopics(1)
	links := openLinks(t)
	before := int64(0)
	wantShipped := func(t *testing.T, clicks int64) {
		t.Helper()
		_, end, err := client.Offsets(t.Context(), 0)
		testkit.Must(t, err)
		testkit.Equal(t, "clicks shipped", end-before, clicks)
		before = end
	}
	t.Run("gives back unused leases of limited links", func(t *testing.T) {
		link := schema.Link{AccountID: 1, Hash: "limited", URL: "https://example.com/", Active: true,
			CreatedAt: time.Now(), Behaviour: &schema.Behaviour{MaxClicks: 320}}
		testkit.Must(t, links.CreateLink(t.Context(), &link))
		cfg := leave(t, 0)
		keys := filepath.Join(cfg.Dir, edgeservice.KeysName)
		testkit.Must(t, os.WriteFile(keys, []byte("{}"), 0o600))
		left, err := spool.Open(cfg, log)
		testkit.Must(t, err)
		testkit.Must(t, left.NoteLeases())
		testkit.Must(t, links.AddLeaseHolder(t.Context(), left.Incarnation()))
		_, err = links.TakeLease(t.Context(), left.Incarnation(), schema.LimitLease{LinkID: link.ID, Call: 1, Granted: -1})
		testkit.Must(t, err)
		for range 3 {
			left.Append(0, &schema.Click{LinkID: link.ID, ClickedAt: time.UnixMilli(1_800_000_000_000), Limited: true})
		}
		testkit.Must(t, left.Close())
		var out strings.Builder
		testkit.Must(t, edgeservice.Drain(t.Context(), cfg, client, links, &out, log))
		testkit.Equal(t, "output", out.String(), "3 clicks shipped\n")
		wantShipped(t, 3)
		use, err := links.LimitUse(t.Context(), []int64{link.ID})
		testkit.Must(t, err)
		testkit.Equal(t, "use", use[link.ID], schema.LimitUse{Granted: 3, Spent: 3})
		if _, err := os.Stat(keys); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the keys of visitors are there: error %v", err)
		}
	})
	t.Run("ships everything and removes the segments", func(t *testing.T) {
		cfg := leave(t, 300)
		var out strings.Builder
		testkit.Must(t, edgeservice.Drain(t.Context(), cfg, client, links, &out, log))
		testkit.Equal(t, "output", out.String(), "300 clicks shipped\n")
		testkit.Equal(t, "segments", len(segments(t, cfg.Dir)), 0)
		wantShipped(t, 300)
		out.Reset()
		testkit.Must(t, edgeservice.Drain(t.Context(), cfg, client, links, &out, log)) // again
		testkit.Equal(t, "output", out.String(), "0 clicks shipped\n")
		wantShipped(t, 0)
	})
	t.Run("refuses a spool in use", func(t *testing.T) {
		cfg := leave(t, 10)
		s, err := spool.Open(cfg, log)
		testkit.Must(t, err)
		defer testkit.Close(t, s)
		err = edgeservice.Drain(t.Context(), cfg, client, links, new(strings.Builder), log)
		if !errors.Is(err, filelock.ErrHeld) {
			t.Errorf("error %v", err)
		}
		testkit.Equal(t, "pending", s.Pending(), 10)
		wantShipped(t, 0)
	})
	t.Run("refuses a directory that is no spool, and leaves it alone", func(t *testing.T) {
		for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "missing")} {
			cfg := spool.DefaultConfig()
			cfg.Dir = dir
			err := edgeservice.Drain(t.Context(), cfg, client, links, new(strings.Builder), log)
			if err == nil || !strings.Contains(err.Error(), "is not the directory of a spool") {
				t.Errorf("error %v", err)
			}
			entries, _ := os.ReadDir(dir)
			testkit.Equal(t, "files", len(entries), 0)
		}
	})
	t.Run("names the clicks that it cannot ship", func(t *testing.T) {
		cfg := leave(t, 300)
		path := segments(t, cfg.Dir)[0]
		data, err := os.ReadFile(path)
		testkit.Must(t, err)
		data[70] ^= 1 // in the first record
		testkit.Must(t, os.WriteFile(path, data, 0o600))
		err = edgeservice.Drain(t.Context(), cfg, client, links, new(strings.Builder), log)
		if err == nil || !strings.Contains(err.Error(), "1 segments are damaged") {
			t.Errorf("error %v", err)
		}
		wantShipped(t, 299) // all others
	})
	t.Run("leaves the rest in the directory when it is stopped", func(t *testing.T) {
		cfg := leave(t, 100)
		broker.Stop()
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // it tries for a few more seconds
		err := edgeservice.Drain(ctx, cfg, client, links, new(strings.Builder), log)
		if err == nil || !strings.Contains(err.Error(), "100 clicks are not shipped") {
			t.Errorf("error %v", err)
		}
		broker.Start()
		testkit.Succeeds(t, func() error {
			return edgeservice.Drain(t.Context(), cfg, client, links, new(strings.Builder), log)
		})
		wantShipped(t, 100)
	})
}
