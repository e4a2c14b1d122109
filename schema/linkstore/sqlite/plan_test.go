package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"linkstream/schema/linkstore/sqlite"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// scansResult matches steps that scan arguments, a constant row or the result of another step.
var scansResult = regexp.MustCompile(`^SCAN (CONSTANT ROW|\w+ VIRTUAL TABLE INDEX|\(subquery-)`)

// scansTable reports whether a step of a plan scans a table.
func scansTable(plan *storetest.Plan, step string) bool {
	scanned, scans := strings.CutPrefix(step, "SCAN ")
	name, _, _ := strings.Cut(scanned, " ")
	return scans && !scansResult.MatchString(step) &&
		!slices.Contains(plan.Steps, "CO-ROUTINE "+name) && !slices.Contains(plan.Steps, "MATERIALIZE "+name)
}

// scans are the tables that statements scan.
var scans = map[string]string{
	"CertificateFiles: SCAN certificate_files USING INDEX sqlite_autoindex_certificate_files_1": "all",
	"ClickHookAccounts: SCAN webhooks USING INDEX webhooks_of_clicks":                           "all of the index",
	"CreateFirstAccount: SCAN accounts USING COVERING INDEX sqlite_autoindex_accounts_1":        "one row",
	"FoldLinks: SCAN links USING INDEX links_to_fold":                                           "only links to fold",
	"PurgeLinks: SCAN links USING INDEX links_in_trash":                                         "only the trash",
	"PutImport: SCAN imports":                                 "old rows are deleted",
	"TakeChanges: SCAN outbox":                                "the first rows",
	"TakeChanges: SCAN outbox USING INDEX outbox_unpublished": "the rows that are not published",
}

// sorts are the results that statements sort.
var sorts = map[string]string{
	"ChangeLinks: USE TEMP B-TREE FOR GROUP BY":                   "the links of a call",
	"CreateLink: USE TEMP B-TREE FOR ORDER BY":                    "the hashes of a call",
	"CreateLinks: USE TEMP B-TREE FOR ORDER BY":                   "the hashes of a call",
	"DeleteLink: USE TEMP B-TREE FOR GROUP BY":                    "a link",
	"DeleteUnchanged: USE TEMP B-TREE FOR GROUP BY":               "a link",
	"DomainsByHost: USE TEMP B-TREE FOR ORDER BY":                 "a host",
	"Links: USE TEMP B-TREE FOR ORDER BY":                         "a page",
	"Links: USE TEMP B-TREE FOR LAST TERM OF ORDER BY":            "links that were deleted at the same time",
	"RenameTag: USE TEMP B-TREE FOR DISTINCT":                     "the tags of a link",
	"RenameTag: USE TEMP B-TREE FOR string_agg(ORDER BY)":         "the tags of a link",
	"TagCounts: USE TEMP B-TREE FOR GROUP BY":                     "the different tags of an account",
	"WaitingDeliveries: USE TEMP B-TREE FOR string_agg(ORDER BY)": "a delivery",
	"OwnedLinks: USE TEMP B-TREE FOR ORDER BY":                    "the hashes of a call",
	"LinksAfter: USE TEMP B-TREE FOR LAST TERM OF ORDER BY":       "links that were deleted at the same time",
	"RestoreAs: USE TEMP B-TREE FOR GROUP BY":                     "a link",
	"RestoreAs: USE TEMP B-TREE FOR ORDER BY":                     "the domains of an account",
	"RestoreLink: USE TEMP B-TREE FOR GROUP BY":                   "the links of a call",
	"RestoreLink: USE TEMP B-TREE FOR ORDER BY":                   "a hash, and the domains of an account",
	"RestoreLinks: USE TEMP B-TREE FOR GROUP BY":                  "the links of a call",
	"RestoreLinks: USE TEMP B-TREE FOR ORDER BY":                  "the domains of an account",
	"Sessions: USE TEMP B-TREE FOR ORDER BY":                      "the sessions of an account",
	"TransferDomain: USE TEMP B-TREE FOR ORDER BY":                "a host",
}

// testPlans checks that every statement finds its rows by an index, whatever the size of the tables.
func testPlans(t *testing.T, texts *storetest.Texts) {
	path := filepath.Join(t.TempDir(), "links.db")
	openLinks(t, path)
	raw := sqlitetest.Raw(t, path)
	plans := texts.Explain(func(text string) []string { return explain(t, raw, sqlite.Translate(text)) })
	plans.WantNone(t, scansTable, scans)
	plans.WantNone(t, func(_ *storetest.Plan, step string) bool {
		return strings.HasPrefix(step, "USE TEMP B-TREE")
	}, sorts)
	for i := range plans {
		page, _, _ := strings.Cut(plans[i].String(), "SCAN page LEFT-JOIN") // the page itself may be sorted
		if plans[i].Method == "Links" && strings.Contains(page, "USE TEMP B-TREE FOR ORDER BY") {
			t.Errorf("links are sorted to find a page: %s", &plans[i])
		}
	}
	const byID = "SEARCH l USING INTEGER PRIMARY KEY (rowid=?)"
	const byHash = "SEARCH n USING INDEX sqlite_autoindex_links_1 (domain_id=? AND hash=?)"
	plans.Want(t, "Links", "a.link_count", "(account_id=? AND ordinal>? AND ordinal<?)")
	plans.Want(t, "Links", "WHERE l.account_id = $1 AND l.ordinal > 0", "(account_id=? AND ordinal>?)")
	plans.Want(t, "LinkIDs", "l.ordinal > 0", "(account_id=? AND ordinal>?)")
	plans.Want(t, "LinkIDs", "(l.folded_url IS NOT NULL OR", "USING INDEX links_folded (account_id=? AND ordinal>?)")
	plans.Want(t, "LinkIDs", "l.updated_at = $3", "USING INDEX links_in_trash (account_id=? AND updated_at=?)")
	plans.Want(t, "LinksAfter", "l.ordinal > CAST($2", "(account_id=? AND ordinal>?)")
	plans.Want(t, "LinksAfter", "l.ordinal < CAST($2", "(account_id=? AND ordinal>? AND ordinal<?)")
	plans.Want(t, "LinksAfter", "l.updated_at <= $",
		"USING INDEX links_in_trash (account_id=? AND updated_at>? AND updated_at<?)")
	plans.Want(t, "ChangedLinks", "l.number > CAST", "USING INDEX links_numbered (account_id=? AND number>?)")
	plans.Want(t, "ChangedLinks", "l.number IS NULL", "(account_id=? AND ordinal>?)")
	plans.Want(t, "NumberChanges", "ORDER BY updated_at LIMIT", "INDEX links_to_number (account_id=?)")
	plans.Want(t, "LinksByID", "", byID)
	plans.Want(t, "ChangeLinks", "ORDER BY l.id", byID)
	plans.Want(t, "LinksByHash", "", byHash)
	plans.Want(t, "EdgeLinks", "", byHash)
	plans.Want(t, "EdgeLinks", "", "SEARCH b USING COVERING INDEX sqlite_autoindex_links_1 (domain_id=? AND hash>? AND "+
		"hash<?)")
	plans.Want(t, "CreateLinks", "k.place", "SEARCH links USING INDEX sqlite_autoindex_links_1 (domain_id=? AND hash=?)")
	const byExternalID = "USING INDEX links_by_external_id (account_id=? AND external_id=?)"
	plans.Want(t, "CreateLinks", "l.external_id = k.hash", byExternalID)
	plans.Want(t, "ExternalLink", "", byExternalID)
	plans.Want(t, "UpdateLink", "external_id = NULL", byExternalID)
	plans.Want(t, "ReusableLink", "link_targets", "PRIMARY KEY (account_id=? AND target=? AND ordinal<?)")
	plans.Want(t, "ReusableLink", "l.ordinal",
		"SEARCH l USING INDEX sqlite_autoindex_links_2 (account_id=? AND ordinal=?)")
	plans.Want(t, "OwnedLinks", "", "SEARCH n USING INDEX links_of_account (account_id=? AND hash=?)")
	plans.Want(t, "RestoreLink", "hash = $2", "USING INDEX links_of_account (account_id=? AND hash=?)")
	plans.Want(t, "TagCounts", "", "SEARCH links USING COVERING INDEX links_by_tags (account_id=?)")
	plans.Want(t, "CountAttempts", "DELETE", "SEARCH attempts USING PRIMARY KEY (begins_at<?)")
	plans.Want(t, "Deliveries", "", "INDEX deliveries_shown")
	plans.Want(t, "ResendDelivery", "SET status", "INDEX deliveries_finished")
	plans.Want(t, "NoteDelivery", "OFFSET", "INDEX deliveries_finished (webhook_id=? AND id<?)")
	plans.Want(t, "QueuedMarks", "", "SEARCH h USING PRIMARY KEY (incarnation=? AND lane=?)")
	plans.Want(t, "QueueClicks", "clicks_since", "INDEX webhooks_of_clicks (account_id=?)")
}

func explain(t *testing.T, db *sql.DB, text string) (steps []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, make([]any, 1024)...)
	testkit.Must(t, err)
	defer testkit.Close(t, rows)
	for rows.Next() {
		var id, parent, unused int
		var step string
		testkit.Must(t, rows.Scan(&id, &parent, &unused, &step))
		steps = append(steps, step)
	}
	testkit.Must(t, rows.Err())
	return steps
}
