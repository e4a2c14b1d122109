package transfer_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"linkstream/api/links"
	"linkstream/api/transfer"
	"linkstream/schema"
	"linkstream/schema/blocklist"
	"linkstream/schema/linkstore"
	"linkstream/schema/sqlite"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture has two accounts. go.example.com is a verified domain of the first one.
type fixture struct {
	*transfer.Importer
	*linkstore.Store
	clicks         *sqlite.ClickStore
	shortener      *links.Shortener
	account, other int64
	domain         int64
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	store, err := sqlitetest.Open(t.Context(), filepath.Join(t.TempDir(), "links.db"))
	testkit.Must(t, err)
	t.Cleanup(func() { store.Close() }) // again, if the test has closed it
	f := &fixture{Store: store, account: addAccount(t, store, "a@example.org"),
		other: addAccount(t, store, "b@example.org")}
	domain := schema.Domain{AccountID: f.account, Host: "go.example.com", CreatedAt: time.Now(), VerifiedAt: time.Now()}
	testkit.Must(t, store.CreateDomain(t.Context(), &domain))
	f.domain = domain.ID
	hosts := filepath.Join(t.TempDir(), "hosts")
	testkit.Must(t, os.WriteFile(hosts, []byte("evil.example"), 0o600))
	list, err := blocklist.Open(hosts, slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	f.shortener = links.New(schema.MustParseBaseURL("https://sho.rt"), store, store, list)
	f.clicks = sqlitetest.NewClickStore(t)
	f.Importer = transfer.NewImporter(f.shortener, store, store, f.clicks)
	return f
}

func addAccount(t *testing.T, store *linkstore.Store, email string) int64 {
	t.Helper()
	account := schema.Account{Email: email, CreatedAt: time.Now()}
	testkit.Must(t, store.CreateAccount(t.Context(), &account))
	return account.ID
}

// lines joins the lines of a file.
func lines(rows ...string) string { return strings.Join(rows, "\n") + "\n" }

func (f *fixture) imports(t *testing.T, file string) transfer.Report {
	t.Helper()
	report, err := f.Import(t.Context(), f.account, strings.NewReader(file), transfer.Options{})
	if err != nil {
		t.Fatalf("%v after %+v", err, report)
	}
	return report
}

func (f *fixture) previews(t *testing.T, file string) transfer.Report {
	t.Helper()
	report, err := f.Preview(t.Context(), f.account, strings.NewReader(file), transfer.Options{})
	if err != nil {
		t.Fatalf("%v after %+v", err, report)
	}
	return report
}

// counts requires the outcomes of the rows.
func counts(t *testing.T, report transfer.Report, created, present, failed int64) {
	t.Helper()
	if report.Created != created || report.Present != present || report.Failed != failed || report.Rows != created+present+
		failed {
		t.Fatalf("%+v, want %d created, %d present, %d failed\nerrors %+v", report.Progress, created, present, failed,
			report.Errors)
	}
}

// link returns the account's link with that hash.
func (f *fixture) link(t *testing.T, domainID int64, hash string) schema.Link {
	t.Helper()
	link, err := schema.FindLink(t.Context(), f, domainID, hash)
	testkit.Must(t, err)
	if link.AccountID != f.account {
		t.Fatalf("%+v is of another account", link)
	}
	return link
}

func (f *fixture) total(t *testing.T) int64 {
	t.Helper()
	_, total, err := f.Links(t.Context(), f.account, schema.LinkFilter{}, 1)
	testkit.Must(t, err)
	return total
}
