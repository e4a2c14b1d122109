//go:build deploy && nightly

package outside_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"linkstream/api/apiservice"
	"linkstream/api/auth"
	"linkstream/deploy/tools/engines/enginetest"
	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema"
	"linkstream/schema/linkstore"
	linksqlite "linkstream/schema/linkstore/sqlite"
	"linkstream/schema/service"
	"linkstream/schema/sqlite"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// Lighthouse, the auditor of web pages that Chromium's developers make, judges the dashboard. It measures, so its test
// does not run beside others.

const (
	pagesEmail, pagesPassword = "owner@example.org", "correct horse battery"
	// of a page: the score for performance is that of its quickest load, since others work on the machine, too
	tries = 5
)

// categories are what pages are judged by.
var categories = []string{"performance", "accessibility", "best-practices"}

// TestLighthouse requires the highest score of each page in each category, on an emulated phone with a slow network.
// Its CPU is that of this machine, which is not slowed down: other tests do that.
func TestLighthouse(t *testing.T) {
	modules, err := testengines.NPMPackages(t.Context(), slog.New(slog.NewTextHandler(t.Output(), nil)),
		"testdata/lighthouse/tools")
	testkit.Must(t, err)
	chromium := enginetest.Chromium(t)
	open := startPages(t)
	signedIn := signIn(t, open)
	for name, page := range map[string]string{
		"sign-in":  open + "/dashboard/sign-in",
		"overview": signedIn + "/dashboard",
		"links":    signedIn + "/dashboard/links",
		"link":     signedIn + "/dashboard/links/0/link-1",
		"report":   signedIn + "/dashboard/report?totals=show",
		"tags":     signedIn + "/dashboard/tags",
		"domains":  signedIn + "/dashboard/domains",
		"tokens":   signedIn + "/dashboard/tokens",
		"import":   signedIn + "/dashboard/import",
	} {
		t.Run(name, func(t *testing.T) {
			var wrong string
			for range tries {
				if wrong = judge(t, modules, chromium, page); wrong == "" {
					return
				}
				t.Log(wrong)
			}
			t.Error(wrong)
		})
	}
}

// report is the part of Lighthouse's report that the test reads.
type report struct {
	FinalURL   string `json:"finalDisplayedUrl"`
	Categories map[string]struct {
		Score     float64 `json:"score"`
		AuditRefs []struct {
			ID     string  `json:"id"`
			Weight float64 `json:"weight"`
		} `json:"auditRefs"`
	} `json:"categories"`
	Audits map[string]struct {
		Score        *float64 `json:"score"`
		Title        string   `json:"title"`
		DisplayValue string   `json:"displayValue"`
	} `json:"audits"`
}

// judge returns what keeps a page from the highest scores; "" if nothing does.
func judge(t *testing.T, modules string, chromium *testengines.Chromium, page string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join(modules, "lighthouse/cli/index.js"), page,
		"--output=json", "--quiet", "--no-enable-error-reporting", "--throttling.cpuSlowdownMultiplier=1",
		"--only-categories="+strings.Join(categories, ","), "--chrome-flags=--headless=new --no-sandbox --disable-gpu "+
			"--disable-component-update --user-data-dir="+t.TempDir())
	cmd.Env = append(append(os.Environ(), chromium.Env...), "CHROME_PATH="+chromium.Path)
	var problems strings.Builder
	cmd.Stderr = &problems
	output, err := cmd.Output()
	if err != nil {
		return fmt.Sprintf("%v: %v\n%s", cmd, err, problems.String()) // for example that the browser took too long to start
	}
	var found report
	testkit.Must(t, json.Unmarshal(output, &found))
	if found.FinalURL != page {
		t.Fatalf("%s was judged, not %s", found.FinalURL, page)
	}
	var wrong []string
	for _, name := range categories {
		category, judged := found.Categories[name]
		if !judged {
			t.Fatalf("no judgement of %s:\n%s", name, problems.String())
		}
		if category.Score == 1 {
			continue
		}
		wrong = append(wrong, fmt.Sprintf("%s: %.0f", name, 100*category.Score))
		for _, ref := range category.AuditRefs {
			if audit := found.Audits[ref.ID]; ref.Weight > 0 && audit.Score != nil && *audit.Score < 1 {
				wrong = append(wrong, fmt.Sprintf("  %s %.2f: %s %s", ref.ID, *audit.Score, audit.Title, audit.DisplayValue))
			}
		}
	}
	return strings.Join(wrong, "\n")
}

// startPages runs an api process with an account that has links, tags, clicks, domains and tokens, and returns its base
// URL.
func startPages(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	links, err := linksqlite.Open(t.Context(), filepath.Join(dir, "links.db"))
	testkit.Must(t, err)
	clicks, err := sqlite.OpenClickStore(t.Context(), filepath.Join(dir, "clicks.db"))
	testkit.Must(t, err)
	fillPages(t, links, clicks)
	cfg := apiservice.DefaultConfig()
	cfg.EdgeURL, cfg.Listen = schema.MustParseBaseURL("https://sho.example"), "127.0.0.1:0"
	node, err := apiservice.New(cfg, links, clicks, nil, slog.New(slog.NewTextHandler(t.Output(), nil)))
	testkit.Must(t, err)
	stop := service.RunInBackground(context.Background(), func(ctx context.Context) {
		if err := node.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		stop()
		testkit.Must(t, clicks.Close())
		testkit.Must(t, links.Close())
	})
	return "http://" + node.Addr()
}

func fillPages(t *testing.T, links *linkstore.Store, clicks *sqlite.ClickStore) {
	t.Helper()
	now := time.Now().UTC().Truncate(time.Second)
	owner := schema.Account{Email: pagesEmail, PasswordHash: auth.HashPassword(pagesPassword),
		CreatedAt: now.AddDate(0, 0, -90)}
	testkit.Must(t, links.CreateAccount(t.Context(), &owner))
	for i, host := range []string{"go.example.org", "new.example.org"} {
		domain := schema.Domain{AccountID: owner.ID, Host: host, Challenge: host, CreatedAt: now}
		if i == 0 {
			domain.VerifiedAt = now
		}
		testkit.Must(t, links.CreateDomain(t.Context(), &domain))
		token := schema.Token{AccountID: owner.ID, Name: "Program of " + host, Prefix: "ls_abcd",
			Digest: sha256.Sum256([]byte(host)), CreatedAt: now}
		testkit.Must(t, links.CreateToken(t.Context(), &token))
	}
	var batch schema.ClickBatch
	batch.Reset(0, 0)
	batch.Time = now
	devices := []schema.Device{schema.Mobile, schema.Desktop, schema.Mobile, schema.Bot}
	for i := range 25 {
		link := schema.Link{AccountID: owner.ID, Hash: fmt.Sprintf("link-%d", i),
			URL: fmt.Sprintf("https://example.org/a/page/%d", i), Active: true,
			Title: fmt.Sprintf("Page %d", i), Tags: []string{"all", fmt.Sprintf("tag-%d", i%4)},
			CreatedAt: now.AddDate(0, 0, -60).Add(time.Duration(i) * time.Hour)}
		testkit.Must(t, links.CreateLink(t.Context(), &link))
		for n := range 40 {
			batch.Offset, batch.Lane = append(batch.Offset, batch.Next), append(batch.Lane, schema.Lane{Number: 1})
			batch.Next++
			batch.Seq, batch.LinkID, batch.AccountID = append(batch.Seq, uint64(batch.Next)), append(batch.LinkID, link.ID),
				append(batch.AccountID, owner.ID)
			batch.ClickedAt = append(batch.ClickedAt, now.AddDate(0, 0, -n))
			batch.Device, batch.Browser = append(batch.Device, devices[n%4]),
				append(batch.Browser, []string{"Safari", "Firefox", "Chrome"}[n%3])
			batch.Referrer, batch.Country = append(batch.Referrer, []string{"", "news.example.org"}[n%2]),
				append(batch.Country, []string{"DE", "US", ""}[n%3])
			batch.OS, batch.Language = append(batch.OS, []string{"iOS", "Windows"}[n%2]),
				append(batch.Language, []string{"de", "en"}[n%2])
		}
	}
	testkit.Must(t, clicks.InsertClicks(t.Context(), storetest.NoNames(&batch)))
}

// signIn returns the base URL of a proxy that adds a session's cookie to each request. Lighthouse could only send it
// until the page sets a cookie itself.
func signIn(t *testing.T, base string) string {
	t.Helper()
	form := url.Values{"email": {pagesEmail}, "password": {pagesPassword}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/dashboard/sign-in",
		strings.NewReader(form.Encode()))
	testkit.Must(t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := http.DefaultTransport.RoundTrip(req)
	testkit.Must(t, err)
	resp.Body.Close()
	cookies := resp.Cookies()
	if resp.StatusCode != http.StatusSeeOther || len(cookies) == 0 {
		t.Fatalf("sign-in answers %s", resp.Status)
	}
	target, err := url.Parse(base)
	testkit.Must(t, err)
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		for _, cookie := range cookies {
			r.Out.AddCookie(cookie)
		}
	}})
	t.Cleanup(proxy.Close)
	return proxy.URL
}
