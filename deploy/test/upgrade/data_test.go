//go:build deploy

package upgrade_test

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"linkstream/schema/testkit"
)

// recorded is what a release has left behind, besides its data.
type recorded struct {
	// Clicks of all links by the stage in which the release was killed.
	Counted, InTopic, InSpool int64

	Links  []link           // that were followed
	Totals map[string]int64 // clicks of each link by its hash
	// what the release's API answered to GET requests, by their paths, once it had counted all clicks
	Answers map[string]any
}

// narrowed returns a value of JSON without the fields that another one does not have: version 1 of the API only grows.
func narrowed(value, like any) any {
	switch value := value.(type) {
	case map[string]any:
		like, _ := like.(map[string]any)
		fields := map[string]any{}
		for name, field := range value {
			if other, ok := like[name]; ok {
				fields[name] = narrowed(field, other)
			}
		}
		return fields
	case []any:
		like, _ := like.([]any)
		items := slices.Clone(value)
		for i := range min(len(items), len(like)) {
			items[i] = narrowed(items[i], like[i])
		}
		return items
	}
	return value
}

// clicksAfter is how many more clicks of each link are recorded by the programs of this source.
const clicksAfter = 3

// wantUpgraded requires that a system, which has just been started on the data of a release, answers what the release
// would have answered, counts on, and keeps its counts over a restart. It returns the totals.
func wantUpgraded(t *testing.T, s *system, was recorded, v version) map[string]int64 {
	t.Helper()
	want := maps.Clone(was.Totals)
	s.wantTotals(t, want)
	for path, answer := range was.Answers {
		testkit.Equal(t, "answer to "+path, narrowed(s.answer(t, path), answer), answer)
	}
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

// fixture returns what a release has left behind, and the files that it is in.
func fixture(t *testing.T, release, kind string) (was recorded, files map[string][]byte) {
	t.Helper()
	path := filepath.Join(fixtures, release, kind)
	return readJSON[recorded](t, path+".json"), readArchive(t, path+".tar.zst")
}

// TestEmbeddedData starts the standalone program on the data directory of each release's, which was killed.
func TestEmbeddedData(t *testing.T) {
	t.Parallel()
	for _, release := range releases(t) {
		t.Run(release, func(t *testing.T) { testEmbeddedData(t, release) })
	}
}

func testEmbeddedData(t *testing.T, release string) {
	was, files := fixture(t, release, "embedded")
	data := filepath.Join(t.TempDir(), "data")
	writeFiles(t, data, files)
	s := embedded(t, data)
	s.start(t, newPrograms(t))
	wantUpgraded(t, s, was, newPrograms(t))
}

// TestEnginesData starts the services on engines that have what each release has left there, and on the spool of an
// edge that was killed. Then it goes back: the release's programs start on backups of both databases from before the
// upgrade. The topic has the clicks that were recorded since, by the other programs, so they are counted again.
func TestEnginesData(t *testing.T) {
	t.Parallel()
	for _, release := range releases(t) {
		t.Run(release, func(t *testing.T) { testEnginesData(t, release) })
	}
}

func testEnginesData(t *testing.T, release string) {
	was, files := fixture(t, release, "engines")
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
	s.start(t, olderPrograms(t, release))
	s.wantTotals(t, want)
	testkit.Must(t, shorten(s.api, "later", map[string]any{}))
	want["later"] = 0
	for _, l := range was.Links {
		testkit.Must(t, l.visit(s.edges[0], agents[0].agent, ""))
		want[l.Hash]++
	}
	s.wantTotals(t, want)
}
