//go:build deploy

package upgrade_test

import (
	"path/filepath"
	"testing"
)

// visitsPerStep is how many redirects are answered between two changes.
const visitsPerStep = 150

// TestRollingUpgrade replaces the programs of the last release by those of this source one at a time, under load. Every
// program is killed rather than stopped: what it leaves behind is the most that the next one can find. In the end each
// answered redirect is counted once.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	older, newer := olderPrograms(t, lastRelease(t)), newPrograms(t)
	e := newInstallation(t)
	s := e.services(t)
	s.edges = append(s.edges, s.add(t, "edge", e.env, filepath.Join(t.TempDir(), "spool")).public[0])
	s.add(t, "ingest", e.env, "")
	otherAPI := s.add(t, "api", e.env, "").public[0]
	s.start(t, older)
	links := createLinks(t, s)
	edges, apis := newBalancer(s.edges...), newBalancer(s.api, otherAPI)
	work := startLoad(edges, apis, links)
	work.run(t, visitsPerStep)
	for _, service := range []string{"ingest", "edge", "api"} { // the order that deploy/manual/operate.md names
		for _, p := range s.programs {
			if p.service != service {
				continue
			}
			replace := func() {
				p.kill(t)
				p.start(t, newer)
			}
			switch service {
			case "edge":
				edges.down(p.public[0], replace)
			case "api":
				apis.down(p.public[0], replace)
			default:
				replace()
			}
			work.run(t, visitsPerStep)
		}
	}
	s.wantTotals(t, work.stop(t))
	s.wantNoAlarm(t)
}
