//go:build engines

package clickhouse_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"linkstream/schema"
	"linkstream/schema/clickhouse"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func TestQueryPlans(t *testing.T) {
	dsn := engines.ClickHouse(t)
	store, raw := openClicks(t, dsn), openRaw(t, dsn)
	batch, source := new(schema.ClickBatch), storetest.NewTraffic()
	for range 3 { // for a single row, all plans are alike
		source.Fill(batch, 0, 40_000)
		for i := range 20_000 { // more rows of a link and day than combinations of their names
			batch.LinkID[i], batch.AccountID[i] = storetest.HotLink, storetest.HotAccount
			for _, by := range schema.Dimensions() {
				names := *batch.Names(by)
				names[i] = names[0]
			}
		}
		testkit.Must(t, store.InsertClicks(t.Context(), batch))
	}
	testkit.Must(t, store.SetHistories(t.Context(),
		storetest.HistoryOf(storetest.HotAccount, storetest.HotLink, "bitly", time.Unix(1_700_000_000, 0), 1, 2)))
	reading, lookingUp := clickhouse.ProjectionSettings, clickhouse.LookupSettings
	for name, reads := range map[string]struct {
		settings    ch.Settings
		projections []string
		args        []any
		whole       bool // reads all rows of its projections
	}{
		"stats": {lookingUp("link_clients"), []string{"link_clients"}, []any{storetest.HotLink, storetest.HotLink}, false},
		"counts": {reading("link_clients"), []string{"link_clients"},
			[]any{[]int64{storetest.HotLink, 7919}, []int64{1}}, false},
		"owned counts": {reading("account_links"), []string{"account_links"}, []any{storetest.HotAccount, 1, 7919,
			storetest.HotAccount, 1, 7919}, false},
		"series": {lookingUp("link_quarters"), []string{"link_quarters"}, []any{[]int64{storetest.HotLink, 7919},
			[]int64{1}}, false},
		"totals": {clickhouse.TotalsSettings(), []string{"link_clients", "account_links"},
			[]any{[]int64{storetest.HotLink, 7919}, []int64{1}, []int64{storetest.HotAccount, 920}, []int64{1}}, false},
		"position": {lookingUp("log_ends"), []string{"log_ends"}, []any{0}, false},
		"marks": {lookingUp("lane_marks"), []string{"lane_marks"}, []any{
			[]string{"\x01" + strings.Repeat("\x00", 14) + "\x01", strings.Repeat("'", 16)}, []uint32{3, 4},
		}, false},
		"lane counts": {settings: reading("lane_marks"), projections: []string{"lane_marks"}, whole: true},
		"combinations": {lookingUp("dimensions"), []string{"dimensions"}, []any{
			[]int64{storetest.HotAccount, 920}, []string{"2026-11-21", "2026-11-22"}, []int64{storetest.HotLink, 7919},
		}, false},
	} {
		t.Run(name+" reads only ranges of "+strings.Join(reads.projections, " and "), func(t *testing.T) {
			text := withoutImported(explain(t, raw, reads.settings, clickhouse.Queries[name], reads.args...))
			for _, projection := range reads.projections {
				if strings.Count(text, "ReadFromMergeTree ("+projection+")") != 1 {
					t.Errorf("projection %s is not read:\n%s", projection, text)
				}
			}
			if n := len(reads.projections); strings.Count(text, "ReadFrom") != n || strings.Count(text, "PrimaryKey") != n ||
				strings.Contains(text, "Condition: true") != reads.whole {
				t.Errorf("something else is read, or all rows:\n%s", text)
			}
		})
	}
}

// withoutImported leaves out the steps of a plan that read imported clicks, which are few rows.
func withoutImported(plan string) string {
	var rest strings.Builder
	within := 0 // the indentation of a step that is left out
	for line := range strings.Lines(plan) {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if within > 0 && indent >= within {
			continue
		}
		within = 0
		if strings.Contains(line, "ReadFromMergeTree (") && strings.Contains(line, "imported_clicks") {
			within = indent
			continue
		}
		rest.WriteString(line)
	}
	return rest.String()
}

// explain returns the plan of a query. It fails the test if no projection can be used.
func explain(t *testing.T, raw driver.Conn, settings ch.Settings, query string, args ...any) string {
	t.Helper()
	all := ch.Settings{"force_optimize_projection": 1}
	maps.Copy(all, settings)
	ctx := ch.Context(t.Context(), ch.WithSettings(all))
	rows, err := raw.Query(ctx, "EXPLAIN indexes = 1, projections = 1 "+query, args...)
	testkit.Must(t, err)
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var line string
		testkit.Must(t, rows.Scan(&line))
		plan.WriteString(line + "\n")
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	return plan.String()
}

func TestStatements(t *testing.T) {
	raw := openRaw(t, engines.ClickHouse(t))
	for name, cluster := range map[string]string{"one server": "", "a cluster": "main",
		"a cluster named by a macro": "{cluster}"} {
		statements, err := clickhouse.Statements(cluster)
		testkit.Must(t, err)
		t.Run("of "+name+" are valid", func(t *testing.T) {
			for _, statement := range statements {
				var formatted string
				if err := raw.QueryRow(t.Context(), "SELECT formatQuery(?)", statement).Scan(&formatted); err != nil {
					t.Errorf("%s: %v", statement, err)
				}
				if clustered := strings.Contains(formatted, "ON CLUSTER"); clustered != (cluster != "") {
					t.Errorf("on a cluster: %v\n%s", clustered, formatted)
				}
			}
			all := strings.Join(statements, "\n")
			for engine, want := range map[string]bool{"ReplicatedMergeTree": cluster != "", "Distributed": cluster != ""} {
				if strings.Contains(all, engine) != want {
					t.Errorf("has %s: %v\n%s", engine, !want, all)
				}
			}
		})
	}
}

// TestClusterSettings checks that the server has the settings for clusters: unknown settings are errors. Their effect
// cannot be seen on one server.
func TestClusterSettings(t *testing.T) {
	dsn := engines.ClickHouse(t)
	openClicks(t, dsn)
	store, err := clickhouse.OnCluster(clickhouse.Config{DSN: dsn, Cluster: "main"})
	testkit.Must(t, err)
	t.Cleanup(func() { store.Close() })
	batch, source := new(schema.ClickBatch), storetest.NewTraffic()
	source.Fill(batch, 0, 10)
	testkit.Must(t, store.InsertClicks(t.Context(), batch))
	if at, err := store.Position(t.Context(), 0); err != nil || at.Next != 10 {
		t.Fatalf("got position %+v, error %v", at, err)
	}
}
