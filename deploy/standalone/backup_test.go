package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"linkstream/deploy/standalone/backup"
	"linkstream/deploy/standalone/embedded"
	"linkstream/schema"
	linksqlite "linkstream/schema/linkstore/sqlite"
	"linkstream/schema/sqlite"
	"linkstream/schema/testkit"
)

// testApp is a service that runs, with one link.
type testApp struct {
	*App
	log    testkit.Buffer
	visits int64 // answered
	stop   func()
}

// startApp starts a service on a data directory.
func startApp(t *testing.T, data string) *testApp {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Data, cfg.Ops.Listen, cfg.Edge.Listen, cfg.API.Listen = data, "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	cfg.EdgeURL = schema.MustParseBaseURL("http://short.test")
	cfg.FirstAccount.Password = "password"
	cfg.Edge.Spool.Lanes = 2
	testkit.Must(t, os.MkdirAll(data, 0o700))
	testkit.Must(t, cfg.Validate())
	a := &testApp{}
	var err error
	a.App, err = Start(t.Context(), cfg, io.Discard, a.log.Logger())
	testkit.Must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := a.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	a.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		if t.Failed() {
			t.Logf("log of %s:\n%s", data, a.log.String())
		}
	})
	t.Cleanup(a.stop)
	testkit.Succeeds(t, func() error { return a.ingest.Ready(t.Context()) })
	return a
}

// hold keeps the service from counting until release is called: another process has the write lock of the click store.
func (a *testApp) hold(t *testing.T) (release func()) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+a.cfg.dir().Clicks()+"?_txlock=immediate&_busy_timeout=10000")
	testkit.Must(t, err)
	tx, err := db.BeginTx(t.Context(), nil)
	testkit.Must(t, err)
	return func() { testkit.Must(t, errors.Join(tx.Rollback(), db.Close())) }
}

// createLink creates a link. Visitors follow the one with the hash known.
func (a *testApp) createLink(t *testing.T, hash string) {
	t.Helper()
	links, err := linksqlite.Open(t.Context(), a.cfg.dir().Links())
	testkit.Must(t, err)
	defer testkit.Close(t, links)
	owner, err := links.AccountByEmail(t.Context(), a.cfg.FirstAccount.Email)
	testkit.Must(t, err)
	link := schema.Link{AccountID: owner.ID, Hash: hash, URL: "https://example.com/", Active: true, CreatedAt: time.Now()}
	testkit.Must(t, links.CreateLink(t.Context(), &link))
}

// visit follows the link some times.
func (a *testApp) visit(t *testing.T, times int) {
	t.Helper()
	for range times {
		testkit.Equal(t, "status", a.status(t), http.StatusFound)
		a.visits++
	}
}

// status returns the status of an answer to a visitor of the link.
func (a *testApp) status(t *testing.T) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+a.edge.Addr()+"/known", nil)
	testkit.Must(t, err)
	req.Host = "short.test"
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	testkit.Must(t, err)
	testkit.Must(t, res.Body.Close())
	return res.StatusCode
}

// counted returns the number of counted clicks.
func (a *testApp) counted(t *testing.T) int64 {
	t.Helper()
	clicks, err := sqlite.CountOf(t.Context(), a.cfg.dir().Clicks())
	testkit.Must(t, err)
	return clicks
}

// awaitCounted waits until all clicks are counted.
func (a *testApp) awaitCounted(t *testing.T, clicks int64) {
	t.Helper()
	testkit.Succeeds(t, func() error {
		if n := a.counted(t); n < clicks {
			return fmt.Errorf("%d clicks are counted, want %d", n, clicks)
		}
		return errors.Join(a.edge.Ready(t.Context()), a.ingest.Ready(t.Context()))
	})
}

// TestBackupWhileClicksMove makes backups while clicks are counted, and leave the spool, between the copies. Each
// backup has each click once.
func TestBackupWhileClicksMove(t *testing.T) {
	t.Parallel()
	a := startApp(t, filepath.Join(t.TempDir(), "data"))
	a.createLink(t, "known")
	for _, releasedBefore := range []string{"spool", "clicks", "links"} {
		t.Run("counted before the copy of "+releasedBefore, func(t *testing.T) {
			a.awaitCounted(t, a.visits)
			release := a.hold(t)
			a.visit(t, 40)
			dir := filepath.Join(t.TempDir(), "backup")
			_, err := a.cfg.backup(t.Context(), dir, func(part string) {
				if part == releasedBefore {
					release()
					a.awaitCounted(t, a.visits)
				}
			})
			testkit.Must(t, err)
			wantRestored(t, dir, a.visits)
		})
	}
}

// wantRestored requires that a restored backup has as many clicks as given, and continues to count.
func wantRestored(t *testing.T, dir string, clicks int64) {
	t.Helper()
	data := t.TempDir()
	_, _, err := (&Config{Data: data}).target().Restore(t.Context(), dir, false)
	testkit.Must(t, err)
	restored := startApp(t, data)
	restored.awaitCounted(t, clicks)
	restored.visit(t, 3)
	restored.awaitCounted(t, clicks+3)
	restored.stop()
	testkit.Equal(t, "counted clicks", restored.counted(t), clicks+3)
	for _, text := range []string{"missing", "damaged", "level=ERROR"} {
		if restored.log.Contains(text) {
			t.Errorf("the log says %q:\n%s", text, restored.log.String())
		}
	}
}

// TestDataDirectory fails if the service keeps something in its data directory that backups do not know.
func TestDataDirectory(t *testing.T) {
	t.Parallel()
	a := startApp(t, filepath.Join(t.TempDir(), "data"))
	a.createLink(t, "known")
	a.visit(t, 10)
	a.awaitCounted(t, 10)
	_, err := command(t, "-data", a.cfg.Data, "account", "add", "b@example.com")
	testkit.Must(t, err)
	copied := []string{embedded.LinksName, embedded.ClicksName, embedded.SpoolName}
	left := []string{embedded.LockName, embedded.BackupLockName, embedded.LinksName + ".lock", embedded.ClicksName +
		".lock"}
	for _, name := range names(t, a.cfg.Data) {
		database := strings.TrimSuffix(strings.TrimSuffix(name, "-wal"), "-shm")
		if !slices.Contains(slices.Concat(copied, left), database) {
			t.Errorf("backups do not know %s", name)
		}
	}
	dir := filepath.Join(t.TempDir(), "backup")
	m, err := a.cfg.backup(t.Context(), dir, func(part string) {
		if part == "links" { // after all parts that may have clicks on it
			a.createLink(t, "late")
		}
	})
	testkit.Must(t, err)
	testkit.Equal(t, "links", m.Links, 2)
	slices.Sort(copied)
	testkit.Equal(t, "copied", slices.DeleteFunc(names(t, dir), func(s string) bool { return s == backup.ManifestName }),
		copied)
}

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	testkit.Must(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// command runs the program in this process.
func command(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	var out testkit.Buffer
	err = run(t.Context(), args, &out, io.Discard)
	return out.String(), err
}

func TestBackupCommands(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	data, dir := filepath.Join(root, "data"), filepath.Join(root, "backup")
	a := startApp(t, data)
	a.createLink(t, "known")
	a.visit(t, 5)
	a.awaitCounted(t, 5)
	wantFailure := func(t *testing.T, text string, args ...string) {
		t.Helper()
		if out, err := command(t, args...); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: output %q, error %v, want one with %q", args, out, err, text)
		}
	}
	out, err := command(t, "-data", data, "backup", dir)
	testkit.Must(t, err)
	if !strings.Contains(out, "1 links, 5 counted clicks") {
		t.Errorf("backup prints %q", out)
	}
	t.Run("refuse what cannot be right", func(t *testing.T) {
		wantFailure(t, "usage: backup DIR", "-data", data, "backup")
		wantFailure(t, "has a backup already", "-data", data, "backup", dir)
		wantFailure(t, "in each other", "-data", data, "backup", filepath.Join(data, "spool", "backup"))
		wantFailure(t, "in each other", "-data", data, "restore", root)
		wantFailure(t, "is not the data directory of a service", "-data", filepath.Join(root, "none"), "backup",
			filepath.Join(root, "x"))
		wantFailure(t, "it is no backup, or one that was interrupted", "-data", filepath.Join(root, "none"), "restore",
			t.TempDir())
	})
	t.Run("restore refuses a running service, and data", func(t *testing.T) {
		wantFailure(t, "in use by another process", "-data", data, "--replace", "restore", dir)
		a.stop()
		wantFailure(t, "with --replace it is kept aside", "-data", data, "restore", dir)
	})
	t.Run("restore says what is lost", func(t *testing.T) {
		later := startApp(t, data)
		later.visit(t, 4)
		later.awaitCounted(t, 9)
		later.stop()
		out, err := command(t, "-data", data, "restore", "--replace", dir)
		testkit.Must(t, err)
		for _, text := range []string{"1 links, 5 counted clicks;", "lost: links and clicks after ",
			"with 1 links, 9 counted clicks"} {
			if !strings.Contains(out, text) {
				t.Errorf("restore prints %q without %q", out, text)
			}
		}
	})
	t.Run("commands wait for a restore that was interrupted", func(t *testing.T) {
		ready := filepath.Join(data, "restore.ready")
		testkit.Must(t, os.Mkdir(ready, 0o700))
		testkit.Must(t, os.Rename(filepath.Join(data, embedded.LinksName), filepath.Join(ready, embedded.LinksName)))
		wantFailure(t, backup.ErrPending.Error(), "-data", data, "account", "add", "a@example.com")
		wantFailure(t, backup.ErrPending.Error(), "-data", data, "backup", filepath.Join(root, "other"))
		restored := startApp(t, data)
		restored.visit(t, 1) // the link is there
		restored.awaitCounted(t, 6)
	})
}
