//go:build deploy

package upgrade_test

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

const (
	kills       = 10                      // of each phase of a move
	killWithin  = 1200 * time.Millisecond // longer than a whole move takes here
	linksCopied = "send clients and visitors to the new services"
)

// TestMigrateTo moves a standalone service to the real engines, under load. The program that moves it is killed again
// and again, at any moment, and so is the old service at last. In the end each answered redirect is counted once by the
// new services.
func TestMigrateTo(t *testing.T) {
	t.Parallel()
	v := newPrograms(t)
	old := embedded(t, filepath.Join(t.TempDir(), "data"))
	old.start(t, v)
	links := createLinks(t, old)
	e := newInstallation(t)
	for name := range preset() {
		if strings.HasPrefix(name, "BOOTSTRAP") { // the account moves
			delete(e.env, name)
		}
	}
	now := e.services(t)
	now.start(t, v)
	mover := &program{service: "migrate-to", env: maps.Clone(e.env)}
	mover.env["DATA"] = old.program("standalone").env["DATA"]
	random := rand.New(rand.NewPCG(16, uint64(time.Now().UnixNano())))

	edges := newBalancer(old.edges[0], now.edges[0])
	oldEdge, newEdge := edges.backends[0], edges.backends[1]
	newEdge.up.Lock() // until the links are there
	work := startLoad(edges, nil, links)
	work.run(t, 2*visitsPerStep)
	for _, said := range []string{"clicks are in ClickHouse", "read-only from now on", linksCopied} {
		mover.launch(t, v, nil)
		testkit.Eventually(t, said, func() bool { return mover.process.Output.Contains(said) })
		mover.kill(t)
	}
	mover.killOften(t, v, random)
	mover.launch(t, v, nil)
	testkit.Eventually(t, "the links are copied", func() bool { return mover.process.Output.Contains(linksCopied) })
	testkit.Must(t, shorten(now.api, "later", map[string]any{}))
	newEdge.up.Unlock()
	oldEdge.up.Lock()
	work.run(t, visitsPerStep)
	oldEdge.up.Unlock() // visitors who still know the old address
	work.run(t, visitsPerStep)
	oldEdge.up.Lock()
	mover.kill(t) // it waits for the old service to stop
	old.programs[0].kill(t)
	mover.killOften(t, v, random)
	wantMoved(t, mover, v)
	work.run(t, visitsPerStep)
	want := work.stop(t)
	oldEdge.up.Unlock()
	later := link{"later", defaultDomain}
	testkit.Must(t, later.visit(now.edges[0], agents[0].agent, ""))
	want["later"] = 1
	now.wantTotals(t, want)
	now.wantNoAlarm(t)
	wantVerified(t, e, now, v, mover.env["DATA"])

	t.Run("the old service redirects after the move, and another move counts that", func(t *testing.T) {
		old.start(t, v)
		click(t, old, links, 2*len(links))
		for _, l := range links {
			want[l.Hash] += 2
		}
		old.stop(t)
		wantMoved(t, mover, v)
		now.wantTotals(t, want)
		now.wantNoAlarm(t)
	})
}

// killOften starts the program some times and kills it after a random time, unless it has ended by then, which must be
// a success.
func (p *program) killOften(t *testing.T, v version, random *rand.Rand) {
	t.Helper()
	for range kills {
		moment := random.Float64() // most are soon: that is when everything is copied
		after := time.Duration(moment * moment * moment * float64(killWithin))
		p.launch(t, v, nil)
		select {
		case <-p.process.Exited:
			testkit.Must(t, p.process.Err)
			continue
		case <-time.After(after):
		}
		run := p.process
		p.kill(t)
		t.Logf("killed after %v: %q", after, run.Output.String())
	}
}

// wantMoved runs a move to its end.
func wantMoved(t *testing.T, mover *program, v version) {
	t.Helper()
	mover.launch(t, v, nil)
	if err := mover.process.Wait(t); err != nil || !mover.process.Output.Contains("everything has moved") {
		t.Fatalf("the move ended with %v\n%s", err, mover.process.Output.String())
	}
}

// wantVerified requires that every click in the spools of the old and of the new edge is counted.
func wantVerified(t *testing.T, e *installation, s *system, v version, data string) {
	t.Helper()
	var lanes bytes.Buffer
	for _, spool := range []string{filepath.Join(data, "spool"), e.spool} {
		out, err := exec.Command(filepath.Join(string(v), "edge"), "lanes", spool).Output()
		testkit.Must(t, err)
		lanes.Write(out)
	}
	verify := exec.Command(filepath.Join(string(v), "ingest"), "verify", "-lanes", "-")
	verify.Stdin, verify.Env = &lanes, os.Environ()
	for name, value := range s.program("ingest").env {
		verify.Env = append(verify.Env, "LINKSTREAM_"+name+"="+value)
	}
	out, err := verify.CombinedOutput()
	if fields := strings.Fields(string(out)); err != nil || len(fields) < 2 || fields[0] != "recorded" {
		t.Errorf("verify: %v\n%s", err, out)
	} else {
		t.Logf("verify:\n%s", out)
	}
}
