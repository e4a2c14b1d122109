package links_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"linkstream/api/links"
	"linkstream/schema"
	"linkstream/schema/blocklist"
	"linkstream/schema/linkstore"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a Shortener on a store with two accounts.
type fixture struct {
	*links.Shortener
	store        *linkstore.Store
	owner, other int64
}

func newFixture(t testing.TB, edgeURL string, blocked ...string) *fixture {
	t.Helper()
	store := sqlitetest.New(t)
	f := &fixture{store: store, owner: addAccount(t, store, "a@example.org"), other: addAccount(t, store, "b@example.org")}
	path := filepath.Join(t.TempDir(), "hosts")
	testkit.Must(t, os.WriteFile(path, []byte(strings.Join(blocked, "\n")), 0o600))
	list, err := blocklist.Open(path, slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	f.Shortener = links.New(schema.MustParseBaseURL(edgeURL), store, store, list)
	return f
}

func addAccount(t testing.TB, store *linkstore.Store, email string) int64 {
	t.Helper()
	account := schema.Account{Email: email, CreatedAt: time.Now()}
	testkit.Must(t, store.CreateAccount(t.Context(), &account))
	return account.ID
}

func (f *fixture) addDomain(t *testing.T, accountID int64, host string, verified bool) int64 {
	t.Helper()
	domain := schema.Domain{AccountID: accountID, Host: host, CreatedAt: time.Now()}
	if verified {
		domain.VerifiedAt = domain.CreatedAt
	}
	testkit.Must(t, f.store.CreateDomain(t.Context(), &domain))
	return domain.ID
}

func (f *fixture) create(t *testing.T, longURL, alias string, domainID int64) (schema.Link, error) {
	t.Helper()
	req := links.Request{AccountID: f.owner, LongURL: longURL}
	if alias != "" {
		req.CustomAlias = &alias
	}
	if domainID != 0 {
		req.DomainID = &domainID
	}
	return f.Create(t.Context(), req)
}

// base returns what precedes the alias in the short URL of a link on a domain.
func (f *fixture) base(domainID int64) string {
	if domainID == 0 {
		return "https://sho.rt/"
	}
	return "https://any.example.org/"
}

// wantInvalid requires CodeInvalid with messages for exactly these fields.
func wantInvalid(t *testing.T, err error, fields ...string) {
	t.Helper()
	var e *schema.Error
	if !errors.As(err, &e) || e.Code != schema.CodeInvalid {
		t.Fatalf("got %v, want invalid %q", err, fields)
	}
	var got []string
	for field, messages := range e.Fields {
		if got = append(got, field); len(messages) == 0 || messages[0] == "" {
			t.Errorf("no message for %q", field)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, fields) {
		t.Fatalf("invalid fields %v, want %q", e.Fields, fields)
	}
}

func TestCreate(t *testing.T) {
	f := newFixture(t, "https://sho.rt/")

	t.Run("stores an active link with a random hash", func(t *testing.T) {
		began := time.Now().Truncate(time.Second)
		link, err := f.create(t, "https://example.com/a?b=c#d", "", 0)
		testkit.Must(t, err)
		if !regexp.MustCompile(`^[0-9A-Za-z]{7}$`).MatchString(link.Hash) {
			t.Errorf("hash %q", link.Hash)
		}
		if got := f.ShortURL(link); got != "https://sho.rt/"+link.Hash {
			t.Errorf("short URL %q", got)
		}
		stored, err := schema.FindLink(t.Context(), f.store, 0, link.Hash)
		testkit.Must(t, err)
		if !stored.CreatedAt.Equal(link.CreatedAt) || link.CreatedAt.Before(began) || link.CreatedAt.After(time.Now()) {
			t.Errorf("created at %v, stored %v", link.CreatedAt, stored.CreatedAt)
		}
		testkit.Equal(t, "created at, truncated to milliseconds", link.CreatedAt, link.CreatedAt.Truncate(time.Millisecond))
		stored.CreatedAt = link.CreatedAt
		testkit.Equal(t, "stored link", stored, link)
		if !link.Active || link.AccountID != f.owner || link.URL != "https://example.com/a?b=c#d" {
			t.Errorf("returned %+v", link)
		}
	})
	t.Run("uses the alias as the hash", func(t *testing.T) {
		for _, alias := range []string{"abc", "a-b_9", "---", strings.Repeat("z", 20)} {
			link, err := f.create(t, "https://example.com/", alias, 0)
			testkit.Must(t, err)
			if link.Hash != alias {
				t.Errorf("hash %q, want %q", link.Hash, alias)
			}
		}
	})
	t.Run("uses the custom domain", func(t *testing.T) {
		id := f.addDomain(t, f.owner, "go.example.org", true)
		link, err := f.create(t, "https://example.com/", "custom", id)
		testkit.Must(t, err)
		if got := f.ShortURL(link); got != "https://go.example.org/custom" {
			t.Errorf("short URL %q", got)
		}
		_, err = f.create(t, "https://example.com/", "custom", 0)
		testkit.Must(t, err) // on the default domain the alias is free
	})
	t.Run("refuses invalid and reserved aliases", func(t *testing.T) {
		for _, alias := range []string{"ab", strings.Repeat("z", 21), "Abc", "a.b", "a b", "äbc", "abc/", "api", "healthz"} {
			_, err := f.create(t, "https://example.com/", alias, 0)
			wantInvalid(t, err, "custom_alias")
		}
		empty := ""
		_, err := f.Create(t.Context(), links.Request{AccountID: f.owner, LongURL: "https://a.example",
			CustomAlias: &empty})
		wantInvalid(t, err, "custom_alias")
	})
	t.Run("takes an alias of any service", func(t *testing.T) {
		domain := f.addDomain(t, f.owner, "any.example.org", true)
		for _, alias := range []string{"Promo/2026.html", "a~b", strings.Repeat("z", 128)} {
			for _, id := range []int64{0, domain} {
				link, err := f.Create(t.Context(), links.Request{AccountID: f.owner, LongURL: "https://example.com/",
					Alias: &alias, DomainID: &id})
				if err != nil || link.Hash != alias || f.ShortURL(link) != f.base(id)+alias {
					t.Errorf("%q: %+v, %v", alias, link, err)
				}
			}
		}
		short := "a"
		_, err := f.Create(t.Context(), links.Request{AccountID: f.owner, LongURL: "https://example.com/", Alias: &short,
			DomainID: &domain})
		testkit.Must(t, err)
	})
	t.Run("refuses invalid aliases, and an alias beside a custom alias", func(t *testing.T) {
		one := "one-of-two"
		for _, alias := range []string{"ab", "", "/abc", "a//b", "robots.txt", "Docs/x", "one-of-two"} {
			for _, custom := range []*string{nil, &one} {
				if alias == one && custom == nil {
					continue
				}
				req := links.Request{AccountID: f.owner, LongURL: "https://example.com/", Alias: &alias, CustomAlias: custom}
				_, err := f.Create(t.Context(), req)
				wantInvalid(t, err, "alias")
				results, err := f.CreateAll(t.Context(), []links.Request{req})
				testkit.Must(t, err)
				wantInvalid(t, results[0].Err, "alias")
			}
		}
	})
	t.Run("refuses an alias that is in use", func(t *testing.T) {
		_, err := f.create(t, "https://example.com/", "twice", 0)
		testkit.Must(t, err)
		_, err = f.create(t, "https://example.com/", "twice", 0)
		wantInvalid(t, err, "custom_alias")
		twice := links.Request{AccountID: f.owner, LongURL: "https://example.com/", Alias: new("twice")}
		_, err = f.Create(t.Context(), twice)
		wantInvalid(t, err, "alias")
		results, err := f.CreateAll(t.Context(), []links.Request{twice})
		testkit.Must(t, err)
		wantInvalid(t, results[0].Err, "alias")
	})
	t.Run("gives one message for unknown, unverified and other accounts' domains", func(t *testing.T) {
		messages := map[string]bool{}
		for _, id := range []int64{-1, 4711, f.addDomain(t, f.other, "other.example.org", true),
			f.addDomain(t, f.owner, "new.example.org", false)} {
			_, err := f.create(t, "https://example.com/", "", id)
			wantInvalid(t, err, "domain_id")
			var e *schema.Error
			errors.As(err, &e)
			messages[e.Fields["domain_id"][0]] = true
		}
		if len(messages) != 1 {
			t.Errorf("messages differ: %v", messages)
		}
	})
	t.Run("reports all invalid fields at once, malformed ones unchanged", func(t *testing.T) {
		_, err := f.create(t, "ftp://example.com/", "a", 4711)
		wantInvalid(t, err, "custom_alias", "domain_id", "long_url")
		alias := "a"
		malformed := map[string][]string{"long_url": {"It is a number."}}
		_, err = f.Create(t.Context(), links.Request{AccountID: f.owner, CustomAlias: &alias, Malformed: malformed})
		wantInvalid(t, err, "custom_alias", "long_url")
		var e *schema.Error
		if errors.As(err, &e); e.Fields["long_url"][0] != "It is a number." || len(malformed) != 1 {
			t.Errorf("fields %v, malformed %v", e.Fields, malformed)
		}
	})
	t.Run("returns the store's error", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := f.Create(ctx, links.Request{AccountID: f.owner, LongURL: "https://example.com/"})
		testkit.WantCode(t, err, schema.CodeInternal)
	})
}

func TestCreateGivesAnAliasToOneOfConcurrentCalls(t *testing.T) {
	f := newFixture(t, "https://sho.rt")
	errs := make([]error, 32)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { _, errs[i] = f.create(t, "https://example.com/", "wanted", 0) })
	}
	wg.Wait()
	created := 0
	for _, err := range errs {
		if err == nil {
			created++
			continue
		}
		wantInvalid(t, err, "custom_alias")
	}
	if created != 1 {
		t.Fatalf("%d calls created the link", created)
	}
}

// takenHashes is a store where the next n hashes are taken.
type takenHashes struct {
	schema.LinkStore
	n int
}

func (s *takenHashes) CreateLink(ctx context.Context, link *schema.Link) error {
	if s.n--; s.n >= 0 {
		return schema.Errorf(schema.CodeConflict, "taken")
	}
	return s.LinkStore.CreateLink(ctx, link)
}

func TestCreateRetriesTakenHashes(t *testing.T) {
	f := newFixture(t, "https://sho.rt")
	list, err := blocklist.Open("", slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	for taken, want := range map[int]schema.Code{3: "", 1000: schema.CodeInternal} {
		store := &takenHashes{f.store, taken}
		s := links.New(schema.MustParseBaseURL("https://sho.rt"), store, f.store, list)
		_, err = s.Create(t.Context(), links.Request{AccountID: f.owner, LongURL: "https://example.com/"})
		testkit.WantCode(t, err, want)
		if store.n < 0 == (want != "") {
			t.Errorf("%d of %d taken hashes were not tried", store.n, taken)
		}
	}
}

func TestCreateRefusesShortLinksAsTargets(t *testing.T) {
	for _, c := range []struct {
		name, edgeURL string
		own, foreign  []string
	}{
		{"every port of a default domain without a port", "https://Sho.RT/",
			[]string{"https://sho.rt", "http://SHO.rt./x", "http://sho.rt:81/", "http://ｓho.rt/"},
			[]string{"https://sho.rt.example", "https://x.sho.rt", "https://xsho.rt"}},
		{"the port of a default domain with a port", "http://127.0.0.1:8080",
			[]string{"http://127.0.0.1:8080/abc", "https://127.0.0.1:8080", "http://[::ffff:7f00:1]:8080/",
				"http://[64:ff9b::7f00:1]:8080/", "http://[64:ff9b:1::7f00:1]:8080/", "http://[2002:7f00:1::1]:8080/",
				"http://[::127.0.0.1]:8080/"},
			[]string{"http://192.0.2.1:8080/", "http://[64:ff9b::c000:201]:8080/"}},
		{"a default domain with its scheme's port", "http://sho.rt:80",
			[]string{"http://sho.rt/x"}, []string{"https://sho.rt/x"}},
		{"a verified custom domain", "https://sho.rt",
			[]string{"https://go.example.org", "http://GO.example.org.:8443/x", "https://bücher.example/"},
			[]string{"https://unverified.example.org/", "https://example.org"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, c.edgeURL)
			f.addDomain(t, f.other, "go.example.org", true)
			f.addDomain(t, f.other, "xn--bcher-kva.example", true)
			f.addDomain(t, f.other, "unverified.example.org", false)
			for _, longURL := range c.own {
				_, err := f.create(t, longURL, "", 0)
				wantInvalid(t, err, "long_url")
			}
			for _, longURL := range c.foreign {
				_, err := f.create(t, longURL, "", 0)
				testkit.Must(t, err)
			}
		})
	}
}

// domainCalls counts the look-ups of verified domains. Without a store no host is one.
type domainCalls struct {
	schema.DomainStore
	n int
}

func (s *domainCalls) VerifiedDomain(ctx context.Context, host string) (schema.Domain, error) {
	if s.n++; s.DomainStore == nil {
		return schema.Domain{}, schema.Errorf(schema.CodeNotFound, "no domain")
	}
	return s.DomainStore.VerifiedDomain(ctx, host)
}

// anyLinks is a store that creates every link and keeps none.
type anyLinks struct{ schema.LinkStore }

func (anyLinks) CreateLink(context.Context, *schema.Link) error { return nil }

func TestForeignHostsAreCached(t *testing.T) {
	wantOwned := func(t *testing.T, s *links.Shortener, domains *domainCalls, host string, want bool, calls int) {
		t.Helper()
		_, err := s.Create(t.Context(), links.Request{AccountID: 1, LongURL: "https://" + host + "/"})
		if got := schema.ErrorCode(err) == schema.CodeInvalid; got != want || !got && err != nil || domains.n != calls {
			t.Errorf("%s: owned %t after %d calls, want %t after %d: %v", host, got, domains.n, want, calls, err)
		}
	}
	path := filepath.Join(t.TempDir(), "links.db")
	t.Run("for a second", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store, err := sqlitetest.Open(t.Context(), path)
			testkit.Must(t, err)
			defer store.Close()
			domains := &domainCalls{DomainStore: store}
			s := links.New(schema.MustParseBaseURL("https://sho.rt"), anyLinks{}, domains, nil)
			const host = "new.example.org"
			wantOwned(t, s, domains, host, false, 1)
			owner := addAccount(t, store, "a@example.org")
			now := time.Now()
			testkit.Must(t, store.CreateDomain(t.Context(),
				&schema.Domain{AccountID: owner, Host: host, CreatedAt: now, VerifiedAt: now}))
			time.Sleep(time.Second - 1)
			wantOwned(t, s, domains, host, false, 1)
			time.Sleep(time.Nanosecond)
			wantOwned(t, s, domains, host, true, 2) // not cached as foreign any more
			wantOwned(t, s, domains, host, true, 3) // verified domains are not cached
		})
	})
	t.Run("at most 4096 of them", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			domains := &domainCalls{}
			s := links.New(schema.MustParseBaseURL("https://sho.rt"), anyLinks{}, domains, nil)
			host := func(i int) string { return fmt.Sprintf("h%d.example.org", i) }
			for i := range 4096 {
				wantOwned(t, s, domains, host(i), false, 1+i)
			}
			wantOwned(t, s, domains, host(0), false, 4096)
			wantOwned(t, s, domains, host(4096), false, 4097)
			wantOwned(t, s, domains, host(4096), false, 4097)
			wantOwned(t, s, domains, host(0), false, 4098) // its place was taken
		})
	})
}
