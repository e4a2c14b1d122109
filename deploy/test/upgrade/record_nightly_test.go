//go:build deploy && nightly

package upgrade_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/klauspost/compress/zstd"

	"linkstream/deploy/test/launch"
	"linkstream/deploy/tools/engines/testengines"
	"linkstream/edge/spool"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

var record = flag.String("record", "", "`commit` or tag to make the fixtures of, see testdata/README.md "+
	"(default HEAD, into a folder of the test)")

// TestRecord makes the fixtures of a release: its source, and the data that its programs leave behind when they are
// killed with clicks at each stage.
func TestRecord(t *testing.T) {
	into, commit := filepath.Join(fixtures, *record), *record
	if commit == "" {
		into, commit = t.TempDir(), "HEAD"
	}
	source := sourceOf(t, commit)
	writeArchive(t, filepath.Join(into, "source.tar.zst"), source)
	dir := t.TempDir()
	writeFiles(t, dir, source)
	programs := build(t, dir)
	t.Run("embedded", func(t *testing.T) { recordEmbedded(t, into, programs) })
	t.Run("engines", func(t *testing.T) { recordEngines(t, into, programs) })
}

// sourceOf returns the files of a commit from which the programs are built.
func sourceOf(t *testing.T, commit string) map[string][]byte {
	t.Helper()
	archive, err := exec.Command("git", "-C", launch.Root(), "archive", "--format=tar", commit, "--",
		"go.mod", "go.sum", "LICENSE", "schema", "edge", "ingest", "api", "deploy/standalone", "deploy/migrate-to",
		":(exclude)*_test.go", ":(exclude)*/testdata/*").Output()
	testkit.Must(t, err)
	return readTar(t, bytes.NewReader(archive))
}

const (
	countedClicks = 120
	topicClicks   = 60
	spoolClicks   = 60
)

// createMore creates links that are not followed, and more that a release must not lose.
func createMore(t *testing.T, s *system) {
	t.Helper()
	testkit.Must(t, shorten(s.api, "limited", map[string]any{"max_clicks": 1000, "expires_at": "2100-01-01T00:00:00Z"}))
	testkit.Must(t, shorten(s.api, "locked", map[string]any{"password": "a password"}))
	testkit.Must(t,
		create(s.api, "/api/v1/webhooks", map[string]any{"url": "https://hooks.example.com/",
			"events": []string{"link.deleted"}, "tag": "a"}))
	testkit.Must(t, create(s.api, "/api/v1/shares", map[string]any{"tag": "b", "password": "a password"}))
}

func (s *system) sum(t *testing.T) (clicks int64) {
	t.Helper()
	for _, n := range s.listed(t) {
		clicks += n
	}
	return clicks
}

func (s *system) awaitSum(t *testing.T, want int64) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("%d clicks are counted", want), func() bool { return s.sum(t) == want })
}

func (s *system) awaitShipped(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, "the spool is empty",
		func() bool { return s.program("edge").metric(t, "linkstream_edge_spool_pending_clicks") == 0 })
}

// record awaits that all clicks are counted, and keeps what the API answers.
func (r *recorded) record(t *testing.T, s *system) {
	t.Helper()
	s.awaitSum(t, countedClicks+topicClicks+spoolClicks)
	r.Totals, r.Answers = s.listed(t), map[string]any{}
	today := time.Now().UTC()
	report := "report?from=" + today.AddDate(0, 0, -1).Format(time.DateOnly) + "&to=" + today.Format(time.DateOnly)
	paths := []string{report, "links", "links?tag=a", "tags", "domains", "webhooks", "shares"}
	for hash := range r.Totals {
		paths = append(paths, "stats/"+hash, "links/"+hash, "links/"+hash+"/"+report)
	}
	for _, path := range paths {
		path = "/api/v1/" + path
		r.Answers[path] = s.answer(t, path)
	}
}

// readFiles returns the files below a folder, by their names in slash form.
func readFiles(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	tree := os.DirFS(dir)
	testkit.Must(t, fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		files[name], err = fs.ReadFile(tree, name)
		return err
	}))
	return files
}

// writeArchive writes files, by their names in slash form, to a .tar.zst. The same files always make the same archive.
func writeArchive(t *testing.T, path string, files map[string][]byte) {
	t.Helper()
	var out bytes.Buffer
	zip, err := zstd.NewWriter(&out, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	testkit.Must(t, err)
	w := tar.NewWriter(zip)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		testkit.Must(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(files[name]))}))
		_, err := w.Write(files[name])
		testkit.Must(t, err)
	}
	testkit.Must(t, w.Close())
	testkit.Must(t, zip.Close())
	writeFile(t, path, out.Bytes())
}

// writeJSON writes a value in lines that a diff shows.
func writeJSON(t *testing.T, path string, value any) {
	t.Helper()
	text, err := json.MarshalIndent(value, "", "\t")
	testkit.Must(t, err)
	writeFile(t, path, append(text, '\n'))
}

// readTopic returns all records of the clicks topic, by partition and offset.
func (e *installation) readTopic(t *testing.T) (records []topicRecord) {
	t.Helper()
	client := e.topics(t)
	partitions, err := client.Partitions(t.Context())
	testkit.Must(t, err)
	for p := range partitions {
		start, end, err := client.Offsets(t.Context(), p)
		testkit.Must(t, err)
		for next := start; next < end; {
			_, err := client.Fetch(t.Context(), p, next, time.Second, func(r stream.Record) error {
				records = append(records, topicRecord{p, r.Offset, r.Time.UnixMilli(), bytes.Clone(r.Value)})
				next = r.Offset + 1
				return nil
			})
			testkit.Must(t, err)
		}
	}
	return records
}

// wantStages requires that a fixture has clicks that are counted and others that wait, in the topic or in the spool.
func wantStages(t *testing.T, was recorded) {
	t.Helper()
	sum := int64(0)
	for _, clicks := range was.Totals {
		sum += clicks
	}
	if was.Counted == 0 || was.InTopic+was.InSpool == 0 || was.Counted+was.InTopic+was.InSpool != sum {
		t.Fatalf("%d clicks counted, %d in the topic, %d in the spool, %d in all", was.Counted, was.InTopic, was.InSpool, sum)
	}
}

// pendingIn returns how many clicks the files of a spool have.
func pendingIn(t *testing.T, files map[string][]byte) int64 {
	t.Helper()
	cfg := spool.DefaultConfig()
	cfg.Dir = t.TempDir()
	writeFiles(t, cfg.Dir, files)
	s, err := spool.Open(cfg, slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	defer testkit.Close(t, s)
	return int64(s.Pending())
}

// writeRecorded writes a fixture.
func writeRecorded(t *testing.T, into, kind string, was recorded, files map[string][]byte) {
	t.Helper()
	wantStages(t, was)
	writeArchive(t, filepath.Join(into, kind+".tar.zst"), files)
	writeJSON(t, filepath.Join(into, kind+".json"), was)
}

func recordEmbedded(t *testing.T, into string, by version) {
	data := filepath.Join(t.TempDir(), "data")
	s := embedded(t, data)
	p := s.programs[0]
	p.start(t, by)
	links := createLinks(t, s)
	createMore(t, s)
	click(t, s, links, countedClicks)
	s.awaitSum(t, countedClicks)
	p.stop(t)
	p.launch(t, by, map[string]string{"INGEST_MAX_WAIT": "1m"}) // nothing is counted for so long
	p.awaitReady(t)
	click(t, s, links, topicClicks+spoolClicks)
	p.kill(t)
	files := readFiles(t, data)
	maps.DeleteFunc(files, func(name string, _ []byte) bool { return strings.HasSuffix(name, "-shm") })
	was := recorded{Counted: countedClicks, InSpool: pendingIn(t, spoolOf(files)), Links: links}
	was.InTopic = countedClicks + topicClicks + spoolClicks - was.Counted - was.InSpool
	s.start(t, by)
	was.record(t, s)
	s.stop(t)
	writeRecorded(t, into, "embedded", was, files)
}

func recordEngines(t *testing.T, into string, by version) {
	lent := engines.Lend(t)
	e := installationOn(t, lent.PostgresDatabase, lent.Kafka.Addr, lent.ClickHouseDatabase)
	s := e.services(t)
	edge, ingest := s.program("edge"), s.program("ingest")
	s.start(t, by)
	links := createLinks(t, s)
	createMore(t, s)
	click(t, s, links, countedClicks)
	s.awaitSum(t, countedClicks)
	ingest.stop(t)
	click(t, s, links, topicClicks)
	s.awaitShipped(t)
	testkit.Must(t, lent.Kafka.Stop())
	click(t, s, links, spoolClicks)
	for _, p := range []*program{edge, s.program("api")} {
		p.kill(t)
	}
	waiting := readFiles(t, e.spool)
	files := map[string][]byte{}
	for name, content := range waiting {
		files[spoolFile+name] = content
	}
	files[postgresFile] = dumpPostgres(t, lent.Postgres, e.postgres)
	clickhouse := e.openClickHouse(t)
	for _, table := range tables(t, clickhouse) {
		files[clickhouseFile+table+".sql"], files[clickhouseFile+table+".tsv"] = dumpTable(t, clickhouse, table)
	}
	testkit.Must(t, lent.Kafka.Start(t.Context()))
	records := e.readTopic(t)
	var topic bytes.Buffer
	for _, r := range records {
		testkit.Must(t, json.NewEncoder(&topic).Encode(r))
	}
	files[topicFile] = topic.Bytes()
	was := recorded{Counted: countedClicks, InTopic: int64(len(records)) - countedClicks, InSpool: pendingIn(t, waiting),
		Links: links}
	s.start(t, by)
	was.record(t, s)
	s.stop(t)
	writeRecorded(t, into, "engines", was, files)
}

// dumpPostgres returns the statements that make a database.
func dumpPostgres(t *testing.T, postgres *testengines.Engine, dsn string) []byte {
	t.Helper()
	cmd := exec.Command(filepath.Join(postgres.Source, "pg_dump"), "--inserts", "--no-owner", "--no-privileges", dsn)
	cmd.Env = append(os.Environ(), postgres.ToolEnv...)
	out, err := cmd.Output()
	testkit.Must(t, err)
	var dump bytes.Buffer
	for line := range bytes.Lines(out) {
		if !bytes.HasPrefix(line, []byte(`\`)) && !bytes.HasPrefix(line, []byte("--")) { // commands of psql, comments
			dump.Write(line)
		}
	}
	return dump.Bytes()
}

// tables returns the names of all tables.
func tables(t *testing.T, conn driver.Conn) (names []string) {
	t.Helper()
	testkit.Must(t, conn.QueryRow(t.Context(), "SELECT groupArray(name) FROM system.tables WHERE database = "+
		"currentDatabase()").Scan(&names))
	return names
}

// dumpTable returns the statement that makes a table, without its database, and the rows for insertRows.
func dumpTable(t *testing.T, conn driver.Conn, table string) (statement, rows []byte) {
	t.Helper()
	var database, create string
	testkit.Must(t, conn.QueryRow(t.Context(), "SELECT currentDatabase()").Scan(&database))
	testkit.Must(t, conn.QueryRow(t.Context(), "SHOW CREATE TABLE "+table).Scan(&create))
	asText, _, _ := columns(t, conn, table)
	lines, err := conn.Query(t.Context(), fmt.Sprintf("SELECT formatRow('TSV', %s) FROM %s ORDER BY ALL", asText, table))
	testkit.Must(t, err)
	defer testkit.Close(t, lines)
	var text bytes.Buffer
	for lines.Next() {
		var line string
		testkit.Must(t, lines.Scan(&line))
		text.WriteString(line)
	}
	testkit.Must(t, lines.Err())
	return []byte(strings.ReplaceAll(create, database+".", "") + "\n"), text.Bytes()
}
