package dashboard_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/api/apiservice"
	"linkstream/api/auth"
	"linkstream/api/customdomain"
	"linkstream/api/customdomain/dnstest"
	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func TestDomainDeletedBeforeTheLinkIsStored(t *testing.T) {
	var s *testService
	var domain schema.Domain
	s = startFaulty(t, func(ctx context.Context, method string) error {
		if method == "CreateLink" {
			return s.links.DeleteDomain(ctx, domain.ID)
		}
		return nil
	})
	b := s.signedIn(t)
	domain = s.addDomain(t, "go.example.org", true)
	b.post("/dashboard/links", "long_url", "https://example.com/", "domain_id", id(domain.ID)).want(t,
		http.StatusUnprocessableEntity, "The domain must be a verified domain of yours.")
}

// TestStoreErrorsStayInside lets each method of the stores fail with each code, and looks at every page and form.
func TestStoreErrorsStayInside(t *testing.T) {
	t.Parallel()
	const secret = "secret cause"
	type failure struct {
		method string
		err    error
	}
	var failing atomic.Pointer[failure]
	var reached, called sync.Map // methods that have failed; all that were called
	resolver := dnstest.Start(t)
	s := startFaulty(t, func(_ context.Context, method string) error {
		called.Store(method, true)
		if f := failing.Load(); f != nil && f.method == method {
			reached.Store(method, true)
			return f.err
		}
		return nil
	}, openSignUp, behindProxy, unpaced, func(cfg *apiservice.Config) {
		cfg.Domains = customdomain.Config{Resolver: resolver.Addr(), Timeout: 2 * time.Second, Total: 8 * time.Second}
	})
	link := s.addLink(t, "known", "https://example.com/")
	testkit.Must(t, s.links.UpdateLink(t.Context(), &link, schema.LinkEdit{Tags: &[]string{"word"}}, time.Now()))
	s.count(t, click{link: link, at: s.now(), times: 1, device: schema.Mobile})
	_, token := auth.NewToken(s.account.ID, "program") // whose ID is 1
	testkit.Must(t, s.links.CreateToken(t.Context(), &token))
	domain := s.addDomain(t, "go.example.org", false)
	resolver.Add(t, domain.Host+". CNAME sho.rt.", "_linkstream."+domain.Host+`. TXT "`+domain.Challenge+`"`)
	verified := s.addDomain(t, "verified.example.org", true)
	testkit.Must(t, s.links.SetSite(t.Context(), verified.ID, schema.Site{}, schema.AppLinks{Apple: "{}"}))
	holder := s.addAccount(t, "holder@example.org")
	held := customdomain.New(holder.ID, "held.example.org")
	held.VerifiedAt, held.CheckAt = time.Now(), time.Now().Add(time.Hour)
	testkit.Must(t, s.links.CreateDomain(t.Context(), &held))
	claim := customdomain.New(s.account.ID, held.Host)
	testkit.Must(t, s.links.CreateDomain(t.Context(), &claim))
	resolver.Add(t, claim.Host+". CNAME sho.rt.", "_linkstream."+claim.Host+`. TXT "`+claim.Challenge+`"`)
	owner := s.signedIn(t)
	owner.upload("links.csv", "no column\n").want(t, http.StatusSeeOther)
	owner.waitImport(t, "cannot be imported")
	shared := strings.TrimPrefix(owner.share(t), "/dashboard")

	pages := pagesByMethod(owner, &called, shared, domain, verified)
	pages["SessionByDigest"] = pages["SessionByDigest"][:1] // all pages look it up in one place
	methods := slices.Concat(storetest.Methods[schema.Database](), storetest.Methods[schema.ClickStore](),
		storetest.Methods[schema.ReportStore]())
	for _, code := range []schema.Code{schema.CodeInvalid, schema.CodeUnauthorized, schema.CodeForbidden,
		schema.CodeNotFound, schema.CodeConflict, schema.CodeUnsafeURL, schema.CodeUnavailable, schema.CodeInternal} {
		t.Run(string(code), func(t *testing.T) {
			owner.t = t
			for i, method := range methods {
				stranger := s.browser(t)
				stranger.fields.Set("X-Forwarded-For", fmt.Sprintf("2001:db8:%x::1", i)) // attempts are limited by address
				visitor := strings.ToLower(fmt.Sprintf("%s.%s@example.org", method, code))
				if method == "AccountByEmail" || method == "CreateSession" || method == "CountAttempts" {
					s.addAccount(t, visitor)
				}
				failing.Store(&failure{method, schema.Errorf(code, secret)})
				var answers []answer
				for _, path := range pages[method] {
					answers = append(answers, owner.get(path))
				}
				for _, a := range append(answers, sendForms(owner, stranger, method, visitor, domain, claim)...) {
					if strings.Contains(a.body+fmt.Sprint(a.header), secret) {
						t.Errorf("%s fails: %d %v\n%s", method, a.status, a.header, a.text())
					}
				}
				failing.Store(nil)
				if method == "EndSession" || method == "SetPassword" {
					if owner.get("/dashboard/account").status != http.StatusOK { // the session has ended
						owner = s.signedIn(t)
					}
				}
			}
		})
	}
	// These serve live streams, the API, the admin commands and other services, sessions that were not used for an hour, and accounts with many links
	// (TestOverviewOfManyLinks).
	others := []string{"CreateFirstAccount", "SetSuspended", "LeaseRequests", "UseTokens", "TokenByDigest",
		"DomainsByHost", "ExtendSession", "Position", "InsertClicks", "LinkStats", "SetActive", "SetTakenDown", "TransferDomain", "ReleaseDomain",
		"LaneMarks", "ClickSums", "LaneCounts", "LaneGaps", "LinksByHash", "Destinations", "VerifiedDomains", "VerifiedHosts", "CreateLinks", "RecordedCall", "PutCertificateFile", "CertificateFile",
		"CertificateFiles", "DeleteCertificateFiles", "LockCertificate", "UnlockCertificate", "NoteCertificate", "PendingChanges", "TakeChanges",
		"ValidSessions", "ValidTokens", "ClickTotals", "Share", "CreateWebhook", "Webhook", "UpdateWebhook", "RotateSecret", "DeleteWebhook", "TestWebhook",
		"Deliveries", "ResendDelivery", "WaitingDeliveries", "NoteDelivery", "ReleaseWebhook", "HearingAccounts",
		"HeardPosition", "HeardMarks", "HearClicks", "LinkPassword", "SharedValue", "SetSharedValue", "DeleteSharedValues",
		"AddLeaseHolder", "TakeLease", "StateLeases", "EndLeases", "LimitUse"}
	for _, method := range methods {
		if method == "DomainsToCheck" || method == "PurgeLinks" || method == "UploadPart" || method == "ClaimWebhooks" { // called in the background, whatever happens
			continue
		}
		if _, failed := reached.Load(method); failed == slices.Contains(others, method) {
			t.Errorf("%s failed in the test: %t", method, failed)
		}
	}
	if !strings.Contains(s.log.String(), secret) {
		t.Error("the log does not have the cause")
	}
}

// pagesByMethod gets all pages, and returns their paths by the methods of stores that they call. A page that does not call a method
// is the same whether or not the method fails.
func pagesByMethod(owner *browser, called *sync.Map, shared string, domain, verified schema.Domain) map[string][]string {
	pages := map[string][]string{}
	for _, path := range []string{"", "/links", "/links?q=known", "/links?sort=-clicks", "/links?page=2", "/links?made=0.known", "/links/0/known",
		"/links/0/unknown", "/links/0/known/clicks.csv", "/links/0/known/qr.svg", "/links/0/known/edit", "/report", "/report?tag=word&totals=show", "/report.csv", "/links/new", "/trash", "/tags", "/tags/word", "/bulk", "/import", "/import/errors.csv", "/export.csv", "/domains", fmt.Sprintf("/domains/%d", domain.ID),
		fmt.Sprintf("/domains/%d", verified.ID),
		"/tokens", "/account", "/shares", shared, "/none"} {
		called.Clear()
		owner.get("/dashboard" + path)
		called.Range(func(method, _ any) bool {
			pages[method.(string)] = append(pages[method.(string)], "/dashboard"+path)
			return true
		})
	}
	return pages
}

// sendForms sends the forms that call the method of a store.
func sendForms(owner, stranger *browser, method, visitor string, domain, claim schema.Domain) (answers []answer) {
	post := func(path string, fields ...string) {
		answers = append(answers, owner.post("/dashboard"+path, fields...))
	}
	switch method {
	case "AccountByEmail", "CreateSession":
		answers = append(answers, stranger.signIn(visitor, password))
	case "CountAttempts":
		answers = append(answers, stranger.signIn(visitor, password))
		post(fmt.Sprintf("/domains/%d/verify", domain.ID))
	case "CreateAccount":
		answers = append(answers, stranger.send(http.MethodPost, "/dashboard/sign-up",
			url.Values{"email": {"new." + visitor}, "password": {password}}))
	case "SetPassword":
		post("/account/password", "current", password, "new", password+"2", "again", password+"2")
	case "SetTimeZone":
		post("/account/time-zone", "time_zone", "Europe/Vienna")
	case "EndSession":
		post("/account/sessions/end", "session", "4711")
		post("/account/sessions/end-others")
		post("/sign-out")
	case "CreateLink", "VerifiedDomain", "Domains":
		post("/links", "long_url", "https://"+visitor[:strings.IndexByte(visitor, '@')]+".example/")
		post("/links", "long_url", "https://example.com/", "custom_alias", "chosen")
	case "Domain":
		post("/links", "long_url", "https://example.com/", "domain_id", id(domain.ID))
	case "UpdateLink":
		answers = append(answers, owner.edit("/dashboard/links/0/known", "long_url", "https://example.com/"))
		post("/links/0/known/active", "active", "false")
	case "CreateUpload", "AddUploadPart", "NoteUpload":
		answers = append(answers, owner.upload("links.csv", "no column\n"))
	case "RenameTag":
		post("/tags/word/rename", "new_tag", "other")
		post("/tags/word/delete")
	case "DeleteLink":
		post("/links/0/known/delete")
	case "ChangeLinks":
		post("/links/chosen", "do", "off", "all", "true")
	case "RestoreLink":
		post("/trash/restore", "link", "0.known")
	case "CreateDomain":
		post("/domains", "host", "new.example.org")
	case "VerifyDomain":
		post(fmt.Sprintf("/domains/%d/verify", domain.ID))
	case "NoteDomainCheck", "ContestDomain":
		post(fmt.Sprintf("/domains/%d/verify", claim.ID))
	case "SetSite":
		post(fmt.Sprintf("/domains/%d/site", domain.ID))
	case "DeleteDomain":
		post(fmt.Sprintf("/domains/%d/remove", domain.ID))
	case "CreateToken":
		post("/tokens", "name", "new", "newest", "0")
	case "CreateShare":
		post("/shares", "newest", "1000")
	case "DeleteShare":
		post("/shares/revoke", "share", "1000")
	case "RevokeToken":
		post("/tokens/revoke", "token", "1")
	}
	return answers
}
