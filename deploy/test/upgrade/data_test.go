package upgrade_test

import (
	"path/filepath"
	"testing"

	"linkstream/schema/testkit"
)

// recorded is what a release has left behind, besides its data.
type recorded struct {
	// Clicks of all links by the stage in which the release was killed.
	Counted, InTopic, InSpool int64

	Links   []link
	Reports map[string]map[string]any // what the release's API said of each link once it had counted all clicks
}

// totals returns the clicks of each link.
func (r recorded) totals() map[string]int64 {
	totals := map[string]int64{}
	for hash, report := range r.Reports {
		totals[hash] = total(report)
	}
	return totals
}

// clicksAfter is how many more clicks of each link are recorded by the programs of this source.
const clicksAfter = 3

// wantUpgraded requires that a system, which has just been started on the data of a release, reports what the release would
// have reported, counts on, and keeps its counts over a restart. It returns the totals.
func wantUpgraded(t *testing.T, s *system, was recorded, v version) map[string]int64 {
	t.Helper()
	reports := s.wantTotals(t, was.totals())
	for hash, report := range reports {
		for field, value := range was.Reports[hash] {
			testkit.Equal(t, field+" of "+hash, report[field], value)
		}
	}
	want := was.totals()
	for _, l := range was.Links {
		for range clicksAfter {
			testkit.Must(t, l.visit(s.edges[0], agents[0].agent, ""))
			want[l.Hash]++
		}
	}
	s.wantTotals(t, want)
	s.wantNoAlarm(t)
	s.stop(t)
	s.start(t, v)
	s.wantTotals(t, want)
	s.wantNoAlarm(t)
	return want
}

// wantStages requires that a fixture has clicks that are counted and others that wait, in the topic or in the spool.
func wantStages(t *testing.T, was recorded) {
	t.Helper()
	sum := int64(0)
	for _, clicks := range was.totals() {
		sum += clicks
	}
	if was.Counted == 0 || was.InTopic+was.InSpool == 0 || was.Counted+was.InTopic+was.InSpool != sum {
		t.Fatalf("%d clicks counted, %d in the topic, %d in the spool, %d in all", was.Counted, was.InTopic, was.InSpool, sum)
	}
}

// fixture returns what a release has left behind, and the files that it is in.
func fixture(t *testing.T, kind string) (was recorded, files map[string][]byte) {
	t.Helper()
	path := filepath.Join(fixtures, release, kind)
	return readJSON[recorded](t, path+".json"), readArchive(t, path+".tar.zst")
}

// TestEmbeddedData starts the standalone program on the data directory of the release's, which was killed.
func TestEmbeddedData(t *testing.T) {
	t.Parallel()
	was, files := fixture(t, "embedded")
	data := filepath.Join(t.TempDir(), "data")
	writeFiles(t, data, files)
	s := embedded(t, data)
	s.start(t, newPrograms(t))
	wantUpgraded(t, s, was, newPrograms(t))
}

// TestEnginesData starts the services on engines that have what the release has left there, and on the spool of an edge that
// was killed. Then it goes back: the release's programs start on backups of both databases from before the upgrade. The topic
// has the clicks that were recorded since, by the other programs, so they are counted again.
func TestEnginesData(t *testing.T) {
	t.Parallel()
	was, files := fixture(t, "engines")
	e := newInstallation(t)
	e.restoreDatabases(t, files)
	e.restoreTopic(t, files)
	writeFiles(t, e.spool, spoolOf(files))
	s := e.services(t)
	s.start(t, newPrograms(t))
	want := wantUpgraded(t, s, was, newPrograms(t))
	lost := link{"lost", defaultDomain} // with the database, but not its click
	testkit.Must(t, shorten(s.api, lost.Hash, map[string]any{}))
	testkit.Must(t, lost.visit(s.edges[0], agents[0].agent, ""))
	s.stop(t)

	before := e.withNewDatabases(t)
	before.restoreDatabases(t, files)
	before.skipIDs(t)
	s = before.services(t)
	s.start(t, olderPrograms(t))
	s.wantTotals(t, want)
	testkit.Must(t, shorten(s.api, "later", map[string]any{}))
	want["later"] = 0
	for _, l := range was.Links {
		testkit.Must(t, l.visit(s.edges[0], agents[0].agent, ""))
		want[l.Hash]++
	}
	s.wantTotals(t, want)
}
