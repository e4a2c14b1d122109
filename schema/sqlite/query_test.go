package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"linkstream/schema/sqlite"
	"linkstream/schema/testkit"
)

// scansResult matches steps that scan the arguments or the result of another step, and not a table. The result of a view is that of
// the co-routine with its name.
var scansResult = regexp.MustCompile(`^SCAN (CONSTANT ROW|json_each|named|used|\(subquery)`)

var numbered = regexp.MustCompile(`\?\d`)

func TestQueryPlans(t *testing.T) {
	dir := t.TempDir()
	openLinks(t, filepath.Join(dir, "links.db"))
	openClicks(t, filepath.Join(dir, "clicks.db"))
	for file, queries := range map[string]map[string]string{
		"links.db": sqlite.LinkQueries, "clicks.db": sqlite.ClickQueries,
	} {
		raw := openRaw(t, filepath.Join(dir, file))
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
	t.Run("deliveries are found beside many that wait", func(t *testing.T) {
		for name, index := range map[string]string{"deliveries": "shown", "delivery to send again": "finished", "old deliveries": "finished"} {
			plan := explain(t, openRaw(t, filepath.Join(dir, "links.db")), sqlite.LinkQueries[name])
			for _, step := range plan {
				if strings.Contains(step, "webhook_deliveries") && !strings.Contains(step, "INDEX deliveries_"+index) {
					t.Errorf("%s are not found by the index: %q", name, plan)
				}
			}
		}
	})
	t.Run("a page of links is a range of an index, read in its order", func(t *testing.T) {
		plan := explain(t, openRaw(t, filepath.Join(dir, "links.db")), sqlite.LinkQueries["page of links"])
		if !strings.Contains(plan[0], "(account_id=? AND ordinal>? AND ordinal<?)") {
			t.Fatalf("the page is not a range of the index: %q", plan)
		}
		wantUnsorted(t, plan)
	})
	t.Run("a few links are found by their IDs, and not among all of the account", func(t *testing.T) {
		plan := explain(t, openRaw(t, filepath.Join(dir, "links.db")), sqlite.LinkQueries["links by ID"])
		if !slices.Contains(plan, "SEARCH l USING INTEGER PRIMARY KEY (rowid=?)") {
			t.Fatalf("they are not found by the key: %q", plan)
		}
	})
	t.Run("a link is found by its hash, and not among all of the account", func(t *testing.T) {
		plan := explain(t, openRaw(t, filepath.Join(dir, "links.db")), sqlite.LinkQueries["owned links"])
		if !slices.Contains(plan, "SEARCH l USING INDEX links_of_account (account_id=? AND hash=?)") {
			t.Fatalf("it is not found by the key: %q", plan)
		}
	})
	t.Run("tags are counted in an index that has them in order", func(t *testing.T) {
		plan := explain(t, openRaw(t, filepath.Join(dir, "links.db")), sqlite.LinkQueries["counts of tags"])
		if !slices.Contains(plan, "SEARCH links USING COVERING INDEX links_by_tags (account_id=?)") {
			t.Fatalf("links are read: %q", plan)
		}
	})
	t.Run("a search reads the account's links in the order of the page", func(t *testing.T) {
		plan := explain(t, openRaw(t, filepath.Join(dir, "links.db")), sqlite.LinkQueries["search"])
		if !strings.Contains(plan[0], "(account_id=? AND ordinal>?)") {
			t.Fatalf("links of other accounts are read: %q", plan)
		}
		wantUnsorted(t, plan)
	})
}

func wantUnsorted(t *testing.T, plan []string) {
	t.Helper()
	for _, step := range plan {
		if strings.Contains(step, "TEMP B-TREE") {
			t.Fatalf("the page is sorted: %q", plan)
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
