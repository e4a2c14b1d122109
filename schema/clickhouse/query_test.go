package clickhouse_test

import (
	"maps"
	"strings"
	"testing"

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
		source.Fill(batch, 0, 20_000)
		testkit.Must(t, store.InsertClicks(t.Context(), batch))
	}
	reading, lookingUp := clickhouse.ProjectionSettings, clickhouse.LookupSettings
	for name, reads := range map[string]struct {
		settings    ch.Settings
		projections []string
		args        []any
	}{
		"stats":      {lookingUp("weighted_counts"), []string{"weighted_counts"}, []any{storetest.HotLink}},
		"counts":     {reading("weighted_counts"), []string{"weighted_counts"}, []any{[]int64{storetest.HotLink, 7919}}},
		"position":   {reading("log_ends"), []string{"log_ends"}, []any{0}},
		"last click": {reading("log_ends"), []string{"log_ends"}, []any{0}},
		"last lane":  {nil, []string{"lane_positions"}, []any{0}},
		"mark": {reading("lane_positions"), []string{"lane_positions"}, []any{
			"\x01" + strings.Repeat("\x00", 14) + "\x01", 3,
		}},
		"lane counts": {reading("lane_positions"), []string{"lane_positions"}, nil},
		"link report": {nil, []string{"weighted_counts", "link_referrers", "link_places"}, []any{
			storetest.HotLink, "2026-11-21", storetest.HotLink, "2026-11-21", storetest.HotLink, "2026-11-21", schema.TopNames,
		}},
		"days of a link":      {lookingUp("weighted_counts"), []string{"weighted_counts"}, []any{storetest.HotLink, "2026-11-21"}},
		"places of a link":    {lookingUp("link_places"), []string{"link_places"}, []any{storetest.HotLink, "2026-11-21"}},
		"referrers of a link": {reading("link_referrers"), []string{"link_referrers"}, []any{storetest.HotLink, "2026-11-21", schema.TopNames}},
		"referrers": {lookingUp("link_referrers"), []string{"link_referrers"}, []any{
			[]int64{storetest.HotLink, 7919}, []string{"2026-11-21", "2026-11-22"}, schema.MaxNames,
		}},
		"account report": {nil, []string{"weighted_accounts"}, []any{"2026-11-22", storetest.HotAccount, "2026-11-21", schema.TopNames}},
		"days of an account": {lookingUp("account_quarters"), []string{"account_quarters"}, []any{
			storetest.HotAccount, "2026-11-21 00:00:00",
		}},
		"links of an account": {reading("weighted_accounts"), []string{"weighted_accounts"}, []any{
			storetest.HotAccount, "2026-11-21", schema.TopNames,
		}},
	} {
		t.Run(name+" reads only ranges of "+strings.Join(reads.projections, " and "), func(t *testing.T) {
			text := explain(t, raw, reads.settings, clickhouse.Queries[name], reads.args...)
			for _, projection := range reads.projections {
				if strings.Count(text, "ReadFromMergeTree ("+projection+")") != 1 {
					t.Errorf("projection %s is not read:\n%s", projection, text)
				}
			}
			if n := len(reads.projections); strings.Count(text, "ReadFrom") != n || strings.Count(text, "PrimaryKey") != n ||
				strings.Contains(text, "Condition: true") {
				t.Errorf("something else is read, or all rows:\n%s", text)
			}
		})
	}
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
	for name, cluster := range map[string]string{"one server": "", "a cluster": "main", "a cluster named by a macro": "{cluster}"} {
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

// TestClusterSettings checks that the server knows the settings for clusters: unknown settings are errors. Their effect
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
