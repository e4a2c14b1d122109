package sqlite_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"linkstream/schema"
	"linkstream/schema/sqlite"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func TestMigrations(t *testing.T) {
	t.Run("links", func(t *testing.T) {
		files := os.DirFS("migrations/links")
		storetest.TestFrozenMigrations(t, files, map[string]string{
			"00001_links.sql":        "628937c98a1dda29844d9d1ff030927f95c573bcb72120048d01e0e179b134e4",
			"00002_rate.sql":         "6b98ba8d6d28942b73d3432e0d1b68a8811ce192c2b1abe9afa2fb5a1903ad2e",
			"00003_dashboard.sql":    "1e342e37758124a408a90b5371023e4b1df74ac13ebf20ffcfa6896b04916f9b",
			"00004_takedown.sql":     "d9baaeca5b3744e4db463a2507e6e318d4a7a0160b5f99ce06ef025f6422ddfa",
			"00005_manage.sql":       "25b01b8af7d027b8b7c7259abcefc904114d6696920e3b398de97778938fc336",
			"00006_certificates.sql": "88fa0e9430492e5484fbe66a5b3b4ef1445e6cea05839c126cb10a9253a41334",
			"00007_uploads.sql":      "7a285930e02e66ed0a4061ffe943571b5a6560e4e0aa44c38b0cd7c6dfda27c4",
			"00008_idempotency.sql":  "4bfac64c5314bbb2a7df231cbbef6548c12d579c6f2bbe32ef6912d05cfa956f",
		})
		storetest.TestUpgrades(t, files, func(t *testing.T, from int64) []string {
			path := filepath.Join(t.TempDir(), "links.db")
			testkit.Must(t, sqlite.MigrateLinksTo(t.Context(), path, from))
			openLinks(t, path)
			return catalogue(t, path)
		})
	})
	t.Run("clicks", func(t *testing.T) {
		files := os.DirFS("migrations/clicks")
		storetest.TestFrozenMigrations(t, files, map[string]string{
			"00001_clicks.sql":      "81ad0866130a6abbed51dad1969b2019dc24583e877d8442710ef742e3635437",
			"00002_reports.sql":     "02d7a9e8250ed70ebac223df92e68a1e457f30ac925d2a2da2a78b950da8f180",
			"00003_log_epochs.sql":  "da8aff64e648bd490ce0c5a53156c4c7d9cb7cc48894e5461a7f7a000baaa5dc",
			"00004_lane_counts.sql": "7479feafedbe6597a3a372cc078a00c8555c6c9f864ffbb0e0c76c608281068a",
			"00005_dimensions.sql":  "28ca8bcde0e8002921cb789f105a75af0fd8acb9feaeeec2e17cb2cc9cfdfccb",
			"00006_recent.sql":      "3a2b2224718e3298b6b098f4c7a65ace8c0399f69fab7223f564f92a5d5484f6",
			"00007_owned_days.sql":  "81448cd95d7bd5b2934fe3644f97edca8c3155b60ad81e27fa298fb6bafea07a",
		})
		storetest.TestUpgrades(t, files, func(t *testing.T, from int64) []string {
			path := filepath.Join(t.TempDir(), "clicks.db")
			testkit.Must(t, sqlite.MigrateClicksTo(t.Context(), path, from))
			openClicks(t, path)
			return catalogue(t, path)
		})
	})
}

func TestFailedMigrationChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "links.db")
	second := "-- a comment\nCREATE TABLE second (x INTEGER);\nINSERT INTO second VALUES (1), (2);\n"
	files := fstest.MapFS{
		"00001_first.sql":  {Data: []byte("CREATE TABLE first (x INTEGER);")},
		"00002_second.sql": {Data: []byte(second + "INSERT INTO missing VALUES (1);")},
	}
	if err := sqlite.ApplyMigrations(t.Context(), path, files); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("error %v", err)
	}
	files["00002_second.sql"] = &fstest.MapFile{Data: []byte(second)}
	testkit.Must(t, sqlite.ApplyMigrations(t.Context(), path, files))
	testkit.Must(t, sqlite.ApplyMigrations(t.Context(), path, files)) // has nothing to do
	var rows int
	testkit.Must(t, openRaw(t, path).QueryRowContext(t.Context(), `SELECT count(*) FROM first, second`).Scan(&rows))
	testkit.Equal(t, "rows of both tables", rows, 0)
	testkit.Must(t, openRaw(t, path).QueryRowContext(t.Context(), `SELECT count(*) FROM second`).Scan(&rows))
	testkit.Equal(t, "rows of the second table", rows, 2)
}

// catalogue returns the columns of all tables and the statements that made tables and indexes.
func catalogue(t *testing.T, path string) (all []string) {
	t.Helper()
	rows, err := openRaw(t, path).QueryContext(t.Context(), `
		SELECT concat_ws(' ', type, name, tbl_name, sql) FROM sqlite_schema
		UNION ALL
		SELECT concat_ws(' ', 'column', t.name, c.cid, c.name, c.type, c."notnull", c.dflt_value, c.pk)
		FROM sqlite_schema t, pragma_table_xinfo(t.name) c WHERE t.type = 'table'
		ORDER BY 1`)
	testkit.Must(t, err)
	defer testkit.Close(t, rows)
	for rows.Next() {
		var row string
		testkit.Must(t, rows.Scan(&row))
		all = append(all, row)
	}
	testkit.Must(t, rows.Err())
	return all
}

// TestUpgradedClicks opens a file whose rows were written before reports came.
func TestUpgradedClicks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clicks.db")
	testkit.Must(t, sqlite.MigrateClicksTo(t.Context(), path, 1))
	raw := openRaw(t, path)
	for _, statement := range []string{
		`INSERT INTO counters VALUES (7, 20000, 'desktop', 'Firefox', 3), (7, 20001, 'mobile', 'Chrome', 1),
			(7, 20001, 'bot', 'Googlebot', 1)`,
		`INSERT INTO totals VALUES (7, 5)`,
		`INSERT INTO marks VALUES (0, zeroblob(16), 3, 5)`,
		`INSERT INTO positions VALUES (0, 5)`,
	} {
		_, err := raw.Exec(statement)
		testkit.Must(t, err)
	}
	old := []storetest.OldClick{
		{At: day(20000), Device: schema.Desktop, Browser: "Firefox"}, {At: day(20000), Device: schema.Desktop, Browser: "Firefox"},
		{At: day(20000), Device: schema.Desktop, Browser: "Firefox"}, {At: day(20001), Device: schema.Mobile, Browser: "Chrome"},
		{At: day(20001), Device: schema.Bot, Browser: "Googlebot"},
	}
	storetest.TestUpgradedClicks(t, openClicks(t, path), old, func(t *testing.T) { wantTotal(t, path, 7) })
}

// TestClicksOfAnEarlierRelease lets a program that does not store how many clicks it counts go on after the migration.
func TestClicksOfAnEarlierRelease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clicks.db")
	store, raw := openClicks(t, path), openRaw(t, path)
	batch, source, lane := new(schema.ClickBatch), storetest.NewTraffic(), schema.Lane{}
	want := func(mark, clicks, unknown uint64) {
		t.Helper()
		found := false
		testkit.Must(t, store.LaneCounts(t.Context(), func(got schema.LaneCount) error {
			if got.Lane == lane {
				found = true
				testkit.Equal(t, "count", got, schema.LaneCount{Lane: lane, Mark: mark, Clicks: clicks, Unknown: unknown})
			}
			return nil
		}))
		testkit.Equal(t, "the lane is counted", found, true)
	}
	insert := func(after uint64) {
		t.Helper()
		source.Fill(batch, 0, 10)
		for i := range batch.Lane {
			batch.Lane[i], batch.Seq[i] = lane, after+uint64(i)+1
		}
		testkit.Must(t, store.InsertClicks(t.Context(), batch))
	}
	insert(0)
	want(10, 10, 0)
	_, err := raw.Exec(`UPDATE marks SET seq = seq + 5`)
	testkit.Must(t, err)
	want(15, 10, 5)
	insert(15)
	want(25, 20, 5)
	insert(25)
	want(35, 30, 5)
}

// day returns noon of a UTC day, counted from 1970-01-01.
func day(n int64) time.Time { return time.Unix(n*86400+43200, 0).UTC() }

// TestUpgradedLinks opens a file whose rows were written before sessions came.
func TestUpgradedLinks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "links.db")
	testkit.Must(t, sqlite.MigrateLinksTo(t.Context(), path, 2))
	raw := openRaw(t, path)
	for _, statement := range []string{
		`INSERT INTO accounts (email, password_hash, suspended, link_count, created_at)
			VALUES ('a@example.org', 'hash', 0, 1, 0)`,
		`INSERT INTO tokens (account_id, name, prefix, digest, created_at) VALUES (1, 'name', 'ls_', zeroblob(32), 0)`,
		`INSERT INTO domains (account_id, host, challenge, created_at) VALUES (1, 'go.example.org', '', 0)`,
		`INSERT INTO domains (account_id, host, challenge, created_at, verified_at) VALUES (1, 'verified.example.org', '', 0, 1)`,
		`INSERT INTO links (account_id, domain_id, hash, url, active, ordinal, created_at)
			VALUES (1, 1, 'hash', 'https://example.org/', 1, 1, 0)`,
	} {
		_, err := raw.Exec(statement)
		testkit.Must(t, err)
	}
	storetest.TestUpgradedLinks(t, openLinks(t, path))
}
