package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"linkstream/schema"
	linksqlite "linkstream/schema/linkstore/sqlite"
	"linkstream/schema/sqlite"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// childEnv names a job that turns the test binary into a process that writes to a store, and prints each success, until
// it is done or killed. Its arguments are the file and a name for the process.
const childEnv = "LINKSTREAM_SQLITE_TEST_CHILD"

var jobs = map[string]func(ctx context.Context, path, name string) error{
	"create links": createLinks, "count clicks": countClicks,
}

func TestMain(m *testing.M) {
	if job := jobs[os.Getenv(childEnv)]; job != nil {
		if err := job(context.Background(), os.Args[1], os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

const linksEach = 60

// createLinks creates linksEach links of an account that all processes share, and prints their hashes.
func createLinks(ctx context.Context, path, name string) error {
	links, err := linksqlite.Open(ctx, path)
	if err != nil {
		return err
	}
	account := schema.Account{Email: "shared@example.org", CreatedAt: time.Now()}
	if err := links.CreateAccount(ctx, &account); schema.ErrorCode(err) == schema.CodeConflict {
		account, err = links.AccountByEmail(ctx, account.Email)
		if err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	for i := range linksEach {
		link := schema.Link{AccountID: account.ID, Hash: fmt.Sprintf("%s-%d", name, i), CreatedAt: time.Now()}
		if err := links.CreateLink(ctx, &link); err != nil {
			return err
		}
		fmt.Println(link.Hash)
	}
	return links.Close()
}

const totalClicks = 3_000

// countClicks counts up to totalClicks, perhaps in competition with others, and prints how many are counted.
func countClicks(ctx context.Context, path, _ string) error {
	clicks, err := sqlite.OpenClickStore(ctx, path)
	if err != nil {
		return err
	}
	batch, source := new(schema.ClickBatch), storetest.NewTraffic()
	for {
		if source.Next, err = highestMark(ctx, clicks); err != nil {
			return err
		}
		if source.Next == totalClicks {
			return clicks.Close()
		}
		source.Fill(batch, 0, 50)
		err = clicks.InsertClicks(ctx, batch)
		switch {
		case err == nil:
			fmt.Println(batch.Next)
		case schema.ErrorCode(err) != schema.CodeConflict:
			return err
		}
	}
}

// highestMark returns the highest mark of all lanes, which is the number of clicks: Traffic numbers them across lanes.
func highestMark(ctx context.Context, clicks *sqlite.ClickStore) (mark int64, err error) {
	err = clicks.LaneCounts(ctx, func(lane schema.LaneCount) error {
		mark = max(mark, int64(lane.Mark))
		return nil
	})
	return mark, err
}

// runChild runs a job in a process and returns its output. If killAfter > 0, it kills the process with SIGKILL after
// this number of lines.
func runChild(t *testing.T, job, path, name string, killAfter int) (printed []string) {
	child := exec.CommandContext(t.Context(), os.Args[0], path, name)
	child.Env = append(os.Environ(), childEnv+"="+job)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Error(err)
		return nil
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		printed = append(printed, lines.Text())
		if len(printed) == killAfter {
			child.Process.Kill()
		}
	}
	var exit *exec.ExitError
	if err := child.Wait(); err != nil && (killAfter == 0 || !errors.As(err, &exit)) {
		t.Errorf("child %s: %v", name, err)
	}
	return printed
}

func TestProcesses(t *testing.T) {
	t.Run("several processes open a new file and write to it", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "links.db")
		created := map[string]bool{}
		var mu sync.Mutex
		var group sync.WaitGroup
		for i := range 3 {
			group.Go(func() {
				printed := runChild(t, "create links", path, strconv.Itoa(i), 0)
				mu.Lock()
				defer mu.Unlock()
				for _, hash := range printed {
					created[hash] = true
				}
			})
		}
		group.Wait()
		wantLinks(t, path, created)
		if len(created) != 3*linksEach {
			t.Fatalf("%d links were created, want %d", len(created), 3*linksEach)
		}
	})
	t.Run("a created link survives kill -9", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "links.db")
		created := map[string]bool{}
		for round := range 8 {
			for _, hash := range runChild(t, "create links", path, strconv.Itoa(round), 1+5*round) {
				created[hash] = true
			}
			wantLinks(t, path, created)
		}
	})
	t.Run("one or two processes count each click once despite kill -9", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "clicks.db")
		for round := range 6 {
			var group sync.WaitGroup
			for worker := range 1 + round%2 {
				group.Go(func() { runChild(t, "count clicks", path, strconv.Itoa(worker), 3+round) })
			}
			group.Wait()
			wantIntact(t, path)
		}
		runChild(t, "count clicks", path, "last", 0)
		wantIntact(t, path)
		wantTotal(t, path, totalClicks)
	})
}

// wantLinks requires that the links are in the file, and that the account's ordinals have no gaps.
func wantLinks(t *testing.T, path string, hashes map[string]bool) {
	t.Helper()
	links := openLinks(t, path)
	defer links.Close()
	var accountID int64
	for hash := range hashes {
		link, err := schema.FindLink(t.Context(), links, 0, hash)
		testkit.Must(t, err)
		accountID = link.AccountID
	}
	_, total, err := links.Links(t.Context(), accountID, schema.LinkFilter{}, 1)
	if err != nil || total < int64(len(hashes)) {
		t.Fatalf("got %d links, created %d, error %v", total, len(hashes), err)
	}
	var rows int64
	row := sqlitetest.Raw(t, path).QueryRow(`SELECT count(*) FROM links WHERE ordinal <= ?`, total)
	if err := row.Scan(&rows); err != nil || rows != total {
		t.Fatalf("%d rows for %d ordinals, error %v", rows, total, err)
	}
}

// wantIntact requires that the file is intact and that all clicks up to the highest mark are counted.
func wantIntact(t *testing.T, path string) {
	t.Helper()
	var verdict string
	if err := sqlitetest.Raw(t, path).QueryRow(`PRAGMA integrity_check`).Scan(&verdict); err != nil || verdict != "ok" {
		t.Fatalf("integrity check: %q, error %v", verdict, err)
	}
	clicks := openClicks(t, path)
	defer clicks.Close()
	mark, err := highestMark(t.Context(), clicks)
	testkit.Must(t, err)
	wantTotal(t, path, mark)
}
