//go:build !engines

package e2e_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"linkstream/deploy/test/launch"
	"linkstream/schema/testkit"
)

// backedUpSystem is a system on embedded engines with visitors, who are counted in periods.
type backedUpSystem struct {
	*system
	random  *rand.Rand
	targets []target // outcomes of all periods
	dir     string   // of backups
}

// visitWhile lets visitors follow the links while f runs.
func (b *backedUpSystem) visitWhile(t *testing.T, f func()) {
	t.Helper()
	load := startLoad([]string{b.edge}, b.random.Uint64(), visitPause, b.links()...)
	f()
	for i, visited := range load.stop(t) {
		b.targets[i].answered += visited.answered
		b.targets[i].cut += visited.cut
	}
}

// links returns the links without outcomes.
func (b *backedUpSystem) links() []target {
	links := make([]target, len(b.targets))
	for i := range links {
		links[i].hash = b.targets[i].hash
	}
	return links
}

// succeeds runs a command of the program to its end.
func (b *backedUpSystem) succeeds(t *testing.T, args ...string) (stdout string) {
	t.Helper()
	stdout, stderr, code := b.programs[0].command(t, args...)
	if code != 0 {
		t.Fatalf("%q ended with code %d\n%s", args, code, stderr)
	}
	return stdout
}

// killed starts a command and kills it a little after a name has appeared that it creates, unless it has ended by then.
func (b *backedUpSystem) killed(t *testing.T, pattern string, args ...string) {
	t.Helper()
	p := b.programs[0]
	args = append(p.args[:len(p.args):len(p.args)], args...)
	command := launch.Start(t, launch.Command(launch.Program(t, p.name), p.env, args...))
	testkit.Succeeds(t, func() error {
		select {
		case <-command.Exited:
			return nil
		default:
		}
		if found, err := filepath.Glob(pattern); err != nil || len(found) == 0 {
			return errors.Join(err, fmt.Errorf("no %s", pattern))
		}
		return nil
	})
	<-time.After(time.Duration(b.random.Int64N(int64(10 * time.Millisecond))))
	command.Kill()
}

// wantTotals requires that each link has as many clicks as were answered at least, and as were answered or cut off at
// most.
func (b *backedUpSystem) wantTotals(t *testing.T, least, most []target) {
	t.Helper()
	for i, link := range least {
		var total int64
		testkit.Succeeds(t, func() error {
			if total = b.owner().Total(t, link.hash); total < link.answered {
				return fmt.Errorf("%d clicks of %q are counted, %d were answered", total, link.hash, link.answered)
			}
			return nil
		})
		p := b.programs[0]
		p.awaitMetric(t, gaugePending, func(n float64) bool { return n == 0 })
		if total = b.owner().Total(t, link.hash); total > most[i].answered+most[i].cut {
			t.Errorf("%d clicks of %q are counted, %d were answered and %d cut off when the backup ended", total, link.hash,
				most[i].answered, most[i].cut)
		}
		t.Logf("%q: answered %d before the backup and %d until its end, counted %d", link.hash, link.answered,
			most[i].answered, total)
		for _, name := range []string{counterMissing, counterDropped} {
			testkit.Equal(t, name, p.metric(t, name), 0)
		}
	}
}

// wantVerified requires that the command verify finds no click missing.
func (b *backedUpSystem) wantVerified(t *testing.T) {
	t.Helper()
	if stdout, stderr, code := b.programs[0].command(t, "verify"); code != 0 {
		t.Errorf("verify ended with code %d\n%s%s", code, stdout, stderr)
	}
}

// TestBackup makes backups under load, kills some of them, and the service, and restores them, which is killed as
// well. What was answered before a backup is in it once.
func TestBackup(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	b := &backedUpSystem{system: startStandalone(t), random: rand.New(rand.NewPCG(seed, 0)), dir: t.TempDir()}
	for i := range 3 {
		hash := b.owner().Link(t, object{"long_url": fmt.Sprintf("https://example.com/%d", i)})["hash"].(string)
		b.targets = append(b.targets, target{hash: hash})
	}
	incomplete := 0
	b.visitWhile(t, func() {
		for i := 0; i < 4 || incomplete == 0 && i < 100; i++ { // a busy machine may kill some too late
			dir := filepath.Join(b.dir, fmt.Sprint("killed-", i))
			b.killed(t, dir, "backup", dir)
			entries, err := os.ReadDir(dir)
			if _, complete := os.Stat(filepath.Join(dir, "manifest.json")); err != nil || complete == nil {
				continue // killed before it began, or after its end
			}
			if len(entries) == 0 { // killed before the first file
				b.succeeds(t, "backup", dir)
				continue
			}
			incomplete++
			_, stderr, code := b.programs[0].command(t, "backup", dir)
			if code == 0 || !strings.Contains(stderr, "interrupted") {
				t.Errorf("a backup over one that was killed ended with code %d\n%s", code, stderr)
			}
		}
	})
	if incomplete == 0 {
		t.Error("no backup was killed before its end")
	}
	running, dead := filepath.Join(b.dir, "running"), filepath.Join(b.dir, "dead")
	before := append([]target(nil), b.targets...)
	b.visitWhile(t, func() { b.succeeds(t, "backup", running) })
	after := append([]target(nil), b.targets...)
	b.visitWhile(t, func() {
		<-time.After(300 * time.Millisecond)
		b.programs[0].kill(t)
	})
	b.succeeds(t, "backup", dead)
	for range 4 {
		b.killed(t, filepath.Join(b.data, "restore.*"), "restore", "--replace", running)
	}
	b.succeeds(t, "restore", "--replace", running)
	b.start(t)
	b.wantTotals(t, before, after)
	b.wantVerified(t)
	b.stop(t)
	// The start completes the restore that was killed, or it is repeated.
	b.killed(t, filepath.Join(b.data, "restore.*"), "restore", "--replace", dead)
	b.start(t)
	b.stop(t)
	b.succeeds(t, "restore", "--replace", dead)
	b.start(t)
	b.wantTotals(t, b.targets, b.targets)
	b.wantVerified(t)
}
