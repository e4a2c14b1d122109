//go:build deploy && nightly

package outside_test

import (
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

	"linkstream/deploy/tools/engines/enginetest"
	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema/testkit"
)

// Lighthouse, the auditor of web pages that Chromium's developers make, judges the dashboard. It measures, so its test
// does not run beside others.

// tries is how often a page is loaded at most: its score for performance is the quickest load's, since others work on
// the machine, too.
const tries = 5

// categories are what pages are judged by.
var categories = []string{"performance", "accessibility", "best-practices"}

// TestLighthouse requires the highest score of each page in each category, on an emulated phone with a slow network.
// Its CPU is that of this machine, which is not slowed down: other tests do that.
func TestLighthouse(t *testing.T) {
	modules, err := testengines.NPMPackages(t.Context(), slog.New(slog.NewTextHandler(t.Output(), nil)),
		"testdata/lighthouse/tools")
	testkit.Must(t, err)
	chromium := enginetest.Chromium(t)
	s := startClientService(t)
	for i := range 25 {
		s.click(t, fmt.Sprintf("link-%d", i), fmt.Sprintf(`, "title": "Page %d", "tags": ["all", "tag-%d"]`, i, i%4))
	}
	open, signedIn := s.api, signIn(t, s.api)
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

// signIn returns the base URL of a proxy that adds a session's cookie to each request. Lighthouse could only send it
// until the page sets a cookie itself.
func signIn(t *testing.T, base string) string {
	t.Helper()
	form := url.Values{"email": {clientEmail}, "password": {clientPassword}}
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
