// Package resttest is the contract of the API, version 1, as a suite that any running API passes over HTTP: the API of
// a process of the tests, and the built programs on each kind of engines. It is also the client that other tests of the
// API use.
//
// The tests follow the sections of the API's document. They need no visitors, since not every API runs with an edge.
package resttest

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// System is a running API.
type System struct {
	API   string // base URL
	Short string // base URL of short links on the default domain

	// Admin runs an admin command, which must succeed, and returns its output without the line end.
	Admin func(t *testing.T, args ...string) string
	// Check returns how an answer differs from the description; nil if answers are not checked.
	Check func(*http.Request, Answer) error
}

// UnsafeHost is a host that the API's blocklist must have.
const UnsafeHost = "bad.example"

// Test runs the suite. The tests use accounts, hosts and aliases of their own.
func Test(t *testing.T, s System) {
	for name, test := range map[string]func(t *testing.T, s System){
		"2 Link":                      testLink,
		"3 Custom domain":             testDomain,
		"4 POST shorten":              testShorten,
		"4 POST shorten: aliases":     testTakenAliases,
		"4 POST shorten: fields":      testFields,
		"4 POST shorten: URLs":        testURLs,
		"4 GET stats":                 testStats,
		"4 GET stats: domains":        testStatsOfDomains,
		"4 GET links":                 testLinks,
		"4 GET domains":               testDomains,
		"additions: aliases":          testAliases,
		"additions: path modes":       testPathModes,
		"additions: path patterns":    testPathPatterns,
		"additions: paths":            testPaths,
		"additions: renames":          testRenames,
		"additions: former hashes":    testFormerHashes,
		"additions: cursors":          testCursors,
		"additions: invalid cursors":  testInvalidCursors,
		"additions: changes":          testChanges,
		"additions: since":            testSince,
		"additions: export":           testExport,
		"additions: external IDs":     testExternal,
		"additions: forms":            testForms,
		"additions: times":            testTimes,
		"additions: days":             testDays,
		"additions: default domain":   testDefaultDomain,
		"additions: GET live":         testLive,
		"additions: GET live ends":    testLiveEnds,
		"additions: account, scopes":  testAccount,
		"additions: bulk and trash":   testBulkChanges,
		"additions: QR codes":         testQR,
		"additions: imported clicks":  testHistory,
		"additions: invalid imports":  testInvalidHistories,
		"additions: shares":           testShares,
		"additions: invalid shares":   testInvalidShares,
		"additions: tools":            testTools,
		"additions: tools and scopes": testToolScopes,
		"additions: tool messages":    testToolMessages,
		"additions: webhooks":         testWebhooks,
		"additions: others' webhooks": testWebhooksOfOthers,
		"additions: invalid webhooks": testInvalidWebhooks,
		"5 Authentication":            testAuthentication,
		"7 Errors":                    testErrors,
		"7 Bodies":                    testBodies,
		"7 Messages":                  testMessages,
		"7 Suspended accounts":        testSuspension,
		"8 Headers of the limit":      testLimitHeaders,
		"8 Requests beyond the limit": testLimit,
		"9 Versioning":                testVersions,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

// account is a new account, as a caller with its first token.
type account struct {
	Caller
	email string
}

func (s System) account(t *testing.T) account {
	t.Helper()
	email := label() + "@example.com"
	s.Admin(t, "account", "add", email)
	return account{s.caller(s.Admin(t, "token", "add", email)), email}
}

// caller returns a caller with a token.
func (s System) caller(token string) Caller { return Caller{API: s.API, Token: token, check: s.Check} }

// nobody returns a caller without a token.
func (s System) nobody() Caller { return s.caller("") }

// domain adds a verified domain of the account and returns its id and its host.
func (s System) domain(t *testing.T, of account) (id json.Number, host string) {
	t.Helper()
	host = newHost()
	return s.addDomain(t, of, host, "--verified"), host
}

func (s System) addDomain(t *testing.T, of account, host string, flags ...string) json.Number {
	t.Helper()
	id, ok := Decode(s.Admin(t, append([]string{"domain", "add", of.email, host}, flags...)...)).(json.Number)
	if !ok {
		t.Fatal("domain add printed no id")
	}
	return id
}

// label returns a new name, also for an alias.
func label() string { return strings.ToLower(rand.Text()[:12]) }

func newHost() string { return label() + ".example.org" }

// The objects of section 2 and of the answers in section 4.
var (
	createdLink = Shape{"success": yes, "short_url": link, "original_url": link, "hash": text, "created_at": moment}
	linkStats   = Shape{"success": yes, "hash": text, "short_url": link, "original_url": link, "is_active": boolean,
		"stats": Statistics.Is}
	linkList = Shape{"success": yes, "data": array, "meta": pagination.Is}
	linkItem = Shape{"hash": text, "short_url": link, "original_url": link, "clicks": integer, "is_active": boolean,
		"created_at": moment}
	pagination = Shape{"current_page": integer, "last_page": integer, "per_page": integer, "total": integer}
)

// Statistics are the statistics of a link, and DayCount an item of its clicks_by_day.
var (
	Statistics = Shape{"total_clicks": integer, "clicks_by_day": array, "devices": structure, "browsers": structure}
	DayCount   = Shape{"date": text, "total": integer}
)

// endpoints are the three requests of section 4, and others, for tests of rules that apply to all, with the status of
// the answer to a valid token. known is the hash of a link of the account.
func endpoints(known string) []endpoint {
	return []endpoint{
		{http.MethodPost, "/api/v1/shorten", goodBody, http.StatusCreated},
		{http.MethodGet, "/api/v1/stats/" + known, "", http.StatusOK},
		{http.MethodGet, "/api/v1/links", "", http.StatusOK},
		{http.MethodPost, "/api/v1/shorten", `{`, http.StatusBadRequest},
		{http.MethodPost, "/api/v1/shorten", `{}`, http.StatusUnprocessableEntity},
		{http.MethodPost, "/api/v1/shorten", paddedBody + " ", http.StatusRequestEntityTooLarge},
		{http.MethodGet, "/api/v1/stats/none", "", http.StatusNotFound},
		{http.MethodGet, "/api/v1/links?page=0", "", http.StatusUnprocessableEntity},
		{http.MethodPut, "/api/v1/links", "", http.StatusMethodNotAllowed},
		{http.MethodPost, "/api/v1/openapi.json", "", http.StatusMethodNotAllowed},
		{http.MethodGet, "/api/v1/links//", "", http.StatusNotFound},
		{http.MethodGet, "/api/v1/none", "", http.StatusNotFound},
		{http.MethodGet, "/api/v1", "", http.StatusNotFound},
	}
}

type endpoint struct {
	method, path, body string
	status             int
}

func (e endpoint) String() string { return e.method + " " + e.path }

// goodBody is a valid request to shorten, and paddedBody is one of 64 KiB.
const goodBody = `{"long_url":"https://example.com/"}`

var paddedBody = goodBody + strings.Repeat(" ", 64<<10-len(goodBody))
