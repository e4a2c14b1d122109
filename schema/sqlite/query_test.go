package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"linkstream/schema/sqlite"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/testkit"
)

// scansResult matches steps that scan the arguments or the result of another step, and not a table. The result of a
// view is the result of the co-routine with its name.
var scansResult = regexp.MustCompile(`^SCAN (CONSTANT ROW|json_each|named|used|\(subquery)`)

var numbered = regexp.MustCompile(`\?\d`)

func TestQueryPlans(t *testing.T) {
	dir := t.TempDir()
	openClicks(t, filepath.Join(dir, "clicks.db"))
	for file, queries := range map[string]map[string]string{
		"clicks.db": sqlite.ClickQueries,
	} {
		raw := sqlitetest.Raw(t, filepath.Join(dir, file))
		for name, query := range queries {
			t.Run(name+" is found by a key", func(t *testing.T) {
				plan := explain(t, raw, query)
				for _, step := range plan {
					view, scanned := strings.CutPrefix(step, "SCAN ")
					if scanned && !scansResult.MatchString(step) && !slices.Contains(plan, "CO-ROUTINE "+view) {
						t.Fatalf("a table is scanned: %q", plan)
					}
				}
			})
		}
	}
}

func explain(t *testing.T, db *sql.DB, query string) (plan []string) {
	t.Helper()
	parameters := make([]any, strings.Count(query, "?"))
	if numbered.MatchString(query) { // a numbered parameter may be used more than once
		parameters = make([]any, 20)
	}
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, parameters...)
	testkit.Must(t, err)
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var step string
		testkit.Must(t, rows.Scan(&id, &parent, &unused, &step))
		plan = append(plan, step)
	}
	if len(plan) == 0 || rows.Err() != nil {
		t.Fatalf("plan %q, error %v", plan, rows.Err())
	}
	return plan
}
