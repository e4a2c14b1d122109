//go:build engines

package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// unsynced returns how many pages of a file a power failure would lose.
func unsynced(t *testing.T, path string) uint64 {
	t.Helper()
	file, err := os.Open(path)
	testkit.Must(t, err)
	defer file.Close()
	var pages unix.Cachestat_t
	err = unix.Cachestat(uint(file.Fd()), &unix.CachestatRange{}, &pages, 0) // of the whole file
	if errors.Is(err, unix.ENOSYS) {
		t.Fatal("before 6.5, Linux does not say which pages are on the disk")
	}
	testkit.Must(t, err)
	return pages.Dirty + pages.Writeback
}

// The spool releases clicks, and clients get an answer, when a method returns.
func TestCommitsReachTheDisk(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other")
	testkit.Must(t, os.WriteFile(other, []byte("x"), 0o600))
	if unsynced(t, other) == 0 {
		t.Fatal("what is written is on the disk at once: this test cannot fail")
	}
	clicks := openClicks(t, filepath.Join(dir, "clicks.db"))
	batch, traffic := new(schema.ClickBatch), storetest.NewTraffic()
	for range 3 {
		traffic.Fill(batch, 0, 100)
		testkit.Must(t, clicks.InsertClicks(t.Context(), batch))
		testkit.Equal(t, "pages of clicks that are not on the disk", unsynced(t, filepath.Join(dir, "clicks.db-wal")), 0)
	}
	links := openLinks(t, filepath.Join(dir, "links.db"))
	account := schema.Account{Email: "a@example.org", CreatedAt: time.Now()}
	testkit.Must(t, links.CreateAccount(t.Context(), &account))
	testkit.Must(t,
		links.CreateLink(t.Context(), &schema.Link{AccountID: account.ID, Hash: "abc", URL: "https://example.org/",
			CreatedAt: time.Now()}))
	testkit.Equal(t, "pages of links that are not on the disk", unsynced(t, filepath.Join(dir, "links.db-wal")), 0)
}
