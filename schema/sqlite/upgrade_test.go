package sqlite_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/sqlite"
	"linkstream/schema/testkit"
)

// TestUpgrade goes on with a file of before reports, in which link 7 has five clicks, one of them of a bot.
func TestUpgrade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clicks.db")
	testkit.Must(t, sqlite.CreateFirstClicks(t.Context(), path))
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
	clicks := openClicks(t, path)

	t.Run("keeps counts, marks and position", func(t *testing.T) {
		at, err := clicks.Position(t.Context(), 0)
		want := schema.Position{Next: 5, Marks: map[schema.Lane]uint64{{Number: 3}: 5}}
		if err != nil || fmt.Sprint(at) != fmt.Sprint(want) {
			t.Fatalf("got position %v, error %v", at, err)
		}
		allCounted(t, path, 5)
	})
	t.Run("reports old clicks as of no known referrer, country and account", func(t *testing.T) {
		wantReports(t, clicks, "{[{2024-10-04 3 0} {2024-10-05 1 1}] map[bot:1 desktop:3 mobile:1] "+
			"[{Firefox 3} {Chrome 1}] [{ 4}] [{ 4}]}", "{[] []}")
	})
	t.Run("goes on counting", func(t *testing.T) {
		batch := new(schema.ClickBatch)
		newTraffic().fill(batch, 2)
		batch.Base, batch.Next, batch.Offset = 5, 7, []int64{5, 6}
		for i := range 2 {
			batch.LinkID[i], batch.AccountID[i], batch.ClickedAt[i] = 7, 2, time.Unix(20001*86400, 0).UTC()
			batch.Device[i], batch.Browser[i] = schema.Mobile, "Chrome"
			batch.Referrer[i], batch.Country[i] = "news.example.org", "DE"
		}
		testkit.Must(t, clicks.InsertClicks(t.Context(), batch))
		allCounted(t, path, 7)
		wantReports(t, clicks, "{[{2024-10-04 3 0} {2024-10-05 3 1}] map[bot:1 desktop:3 mobile:3] "+
			"[{Chrome 3} {Firefox 3}] [{ 4} {news.example.org 2}] [{ 4} {DE 2}]}", "{[{2024-10-05 2 0}] [{7 2}]}")
	})
}

// wantReports compares the reports of link 7 and of account 2.
func wantReports(t *testing.T, clicks *sqlite.Clicks, link, account string) {
	t.Helper()
	ofLink, err := clicks.LinkReport(t.Context(), 7, time.Time{})
	if err != nil || fmt.Sprint(ofLink) != link {
		t.Errorf("got report of the link %v, error %v, want %v", ofLink, err, link)
	}
	ofAccount, err := clicks.AccountReport(t.Context(), 2, time.Time{})
	if err != nil || fmt.Sprint(ofAccount) != account {
		t.Errorf("got report of the account %v, error %v, want %v", ofAccount, err, account)
	}
}

// TestLinksUpgrade goes on with a file of before sessions.
func TestLinksUpgrade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "links.db")
	testkit.Must(t, sqlite.CreateOldLinks(t.Context(), path))
	raw := openRaw(t, path)
	for _, statement := range []string{
		`INSERT INTO accounts (email, password_hash, suspended, link_count, created_at)
			VALUES ('a@example.org', 'hash', 0, 1, 0)`,
		`INSERT INTO tokens (account_id, name, prefix, digest, created_at) VALUES (1, 'name', 'ls_', zeroblob(32), 0)`,
		`INSERT INTO domains (account_id, host, challenge, created_at) VALUES (1, 'go.example.org', '', 0)`,
		`INSERT INTO links (account_id, domain_id, hash, url, active, ordinal, created_at)
			VALUES (1, 1, 'hash', 'https://example.org/', 1, 1, 0)`,
	} {
		_, err := raw.Exec(statement)
		testkit.Must(t, err)
	}
	links := openLinks(t, path)
	t.Run("a token of before was never used", func(t *testing.T) {
		token, account, err := links.TokenByDigest(t.Context(), [32]byte{})
		if err != nil || token.Name != "name" || !token.UsedAt.IsZero() || account.Email != "a@example.org" {
			t.Fatalf("got %+v of %+v, error %v", token, account, err)
		}
		testkit.Must(t, links.UseTokens(t.Context(), map[int64]time.Time{token.ID: time.Now()}))
	})
	t.Run("a domain of before keeps its links", func(t *testing.T) {
		testkit.WantCode(t, links.DeleteDomain(t.Context(), 1), schema.CodeConflict)
		link := schema.Link{AccountID: 1, DomainID: 1, Hash: "next", CreatedAt: time.Now()}
		if err := links.CreateLink(t.Context(), &link); err != nil || link.Ordinal != 2 {
			t.Fatalf("got ordinal %d, error %v", link.Ordinal, err)
		}
	})
}
