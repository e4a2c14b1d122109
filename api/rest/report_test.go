package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"linkstream/api/clickreport"
	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// days are the two days of the clicks that testService.click stores.
const days = "from=2026-11-20&to=2026-11-21"

// encode returns the JSON of a value, with the fields of objects in order.
func encode(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	testkit.Must(t, err)
	return string(data)
}

// lists returns the fields of a report that list names, one per dimension. The description of the API has them, too,
// and answers are compared with it.
func lists() (fields []string) {
	for _, by := range schema.Dimensions() {
		fields = append(fields, clickreport.WordsOf(by).List)
	}
	return fields
}

func TestDimensionsAreDescribed(t *testing.T) {
	document := readDescription(t, "openapi.json")
	for _, name := range []string{"GET /api/v1/report", "GET /api/v1/links/{hash}/report"} {
		operation, filters := document.operations()[name], map[string]bool{}
		for _, p := range operation.objects("parameters") {
			filters[fmt.Sprint(p.follow(document)["name"])] = true
		}
		content := operation.object("responses", "200", "content", "application/json")
		answer := content.object("schema").follow(document)
		for _, by := range schema.Dimensions() {
			list := clickreport.WordsOf(by).List
			if !filters[string(by)] || answer.object("properties")[list] == nil ||
				!slices.Contains(answer.strings("required"), list) {
				t.Errorf("%s does not describe %s", name, by)
			}
		}
	}
}

func TestLinkReport(t *testing.T) {
	s := start(t)
	owner, other := s.caller(t, "owner@example.org"), s.caller(t, "other@example.org")
	hash := owner.link(t, map[string]any{"long_url": "https://example.com/"})
	link, err := schema.FindOwnedLink(t.Context(), s.links, owner.account.ID, hash, nil)
	testkit.Must(t, err)
	s.click(t, link.ID, 5)
	get := func(t *testing.T, query string) map[string]any {
		t.Helper()
		a := owner.get(t, "/api/v1/links/"+hash+"/report?"+query)
		a.wantKeys(t, http.StatusOK, append(lists(), "success", "hash", "from", "to", "tz", "interval", "counted_until",
			"totals", "previous", "series", "week")...)
		return a.body
	}

	t.Run("has the clicks of each day, and names of people", func(t *testing.T) {
		body := get(t, days)
		for _, list := range lists() {
			want, named := map[string]string{"browsers": `[{"clicks":4,"name":"Chrome"},{"clicks":1,"name":"Firefox"}]`,
				"devices": `[{"clicks":4,"name":"desktop"},{"clicks":1,"name":"mobile"}]`}[list]
			if !named {
				want = `[{"clicks":5,"name":""}]`
			}
			testkit.Equal(t, list, encode(t, body[list]), want)
			delete(body, list)
		}
		delete(body, "week")
		testkit.Equal(t, "report", encode(t, body), `{"counted_until":null,"from":"2026-11-20",`+
			`"hash":"`+hash+`","interval":"day",`+
			`"previous":{"bots":0,"clicks":0,"people":0,"visitors":0},`+
			`"series":[{"at":"2026-11-20T00:00:00+00:00","bots":0,"people":4,"visitors":4},`+
			`{"at":"2026-11-21T00:00:00+00:00","bots":0,"people":1,"visitors":1}],"success":true,"to":"2026-11-21",`+
			`"totals":{"bots":0,"clicks":5,"people":5,"visitors":5},"tz":"UTC"}`)
	})
	t.Run("has no gaps, and begins with the days of the time zone", func(t *testing.T) {
		body := get(t, "from=2026-11-19&to=2026-11-22&tz=Asia/Tokyo&interval=hour")
		series := body["series"].([]any)
		testkit.Equal(t, "hours", len(series), 96)
		testkit.Equal(t, "first", encode(t, series[0]), `{"at":"2026-11-19T00:00:00+09:00","bots":0,"people":0,"visitors":0}`)
		testkit.Equal(t, "one with clicks", encode(t, series[45]), `{"at":"2026-11-20T21:00:00+09:00","bots":0,"people":4,`+
			`"visitors":4}`)
	})
	t.Run("has the hours of a week, of the time zone and with the filter", func(t *testing.T) {
		for query, want := range map[string]map[string]string{ // by weekday and hour
			days:                                  {"5 12": "4", "6 12": "1"},
			days + "&tz=Asia/Tokyo":               {"5 21": "4", "6 21": "1"},
			days + "&tz=Asia/Tokyo&interval=hour": {"5 21": "4", "6 21": "1"},
			days + "&browser=Firefox":             {"6 12": "1"},
			"from=2026-10-01&to=2026-10-31":       {},
		} {
			week, people := get(t, query)["week"].([]any), map[string]string{}
			testkit.Equal(t, "hours", len(week), 168)
			for i, item := range week {
				hour := item.(map[string]any)
				at := fmt.Sprint(hour["weekday"], " ", hour["hour"])
				testkit.Equal(t, "place", at, fmt.Sprint(1+i/24, " ", i%24))
				if n := fmt.Sprint(hour["people"]); n != "0" {
					people[at] = n
				}
			}
			testkit.Equal(t, "week of "+query, encode(t, people), encode(t, want))
		}
	})
	t.Run("compares with the same number of days before", func(t *testing.T) {
		testkit.Equal(t, "previous", encode(t, get(t, "from=2026-11-21&to=2026-11-21")["previous"]),
			`{"bots":0,"clicks":4,"people":4,"visitors":4}`)
	})
	t.Run("is filtered by names, also by the name of unknown ones", func(t *testing.T) {
		for query, people := range map[string]string{"browser=Firefox": "1", "browser=Firefox&device=desktop": "0",
			"os=": "5", "referrer=x": "0"} {
			testkit.Equal(t, query, encode(t, get(t, days+"&"+query)["totals"].(map[string]any)["people"]), people)
		}
	})
	t.Run("has at most limit names", func(t *testing.T) {
		testkit.Equal(t, "browsers", encode(t, get(t, days+"&limit=1")["browsers"]), `[{"clicks":4,"name":"Chrome"}]`)
	})
	t.Run("answers all invalid fields at once", func(t *testing.T) {
		owner.get(t, "/api/v1/links/"+hash+"/report?from=x&to=&tz=Nowhere&interval=year&limit=0&domain_id=x&os="+
			strings.Repeat("x", 2000)).
			wantInvalid(t, "from", "to", "tz", "interval", "limit", "domain_id", "os")
	})
	t.Run("is 404 for another's link and for unknown ones", func(t *testing.T) {
		for _, path := range []string{"/api/v1/links/unknown/report", "/api/v1/links/" + hash + "/report?domain_id=99",
			"/api/v1/links/%00/report"} {
			owner.get(t, path).wantKeys(t, http.StatusNotFound, "error", "message")
		}
		other.get(t, "/api/v1/links/"+hash+"/report").wantKeys(t, http.StatusNotFound, "error", "message")
	})
	t.Run("is of the link on the named domain", func(t *testing.T) {
		id := owner.addDomain(t, "go.example.org", true)
		owner.shorten(t, map[string]any{"long_url": "https://example.com/", "custom_alias": "same", "domain_id": id}).want(t,
			http.StatusCreated)
		onDomain, err := schema.FindOwnedLink(t.Context(), s.links, owner.account.ID, "same", &id)
		testkit.Must(t, err)
		s.click(t, onDomain.ID, 2)
		owner.link(t, map[string]any{"long_url": "https://example.com/", "custom_alias": "same"})
		for query, people := range map[string]string{"": "0", "&domain_id=0": "0", "&domain_id=" + encode(t, id): "2"} {
			body := owner.get(t, "/api/v1/links/same/report?"+days+query).body
			testkit.Equal(t, "people with "+query, encode(t, body["totals"].(map[string]any)["people"]), people)
		}
	})
}

func TestAccountReport(t *testing.T) {
	s := start(t)
	owner := s.caller(t, "owner@example.org") // the account of testService.click
	other := s.caller(t, "other@example.org")
	var hashes []string
	for n := range 3 {
		hash := owner.link(t, map[string]any{"long_url": "https://example.com/"})
		link, err := schema.FindOwnedLink(t.Context(), s.links, owner.account.ID, hash, nil)
		testkit.Must(t, err)
		s.click(t, link.ID, 2+n)
		hashes = append(hashes, hash)
	}
	a := owner.get(t, "/api/v1/report?limit=2&"+days)
	a.wantKeys(t, http.StatusOK, append(lists(), "success", "from", "to", "tz", "interval", "counted_until", "totals",
		"previous", "series", "week", "links")...)
	testkit.Equal(t, "totals", encode(t, a.body["totals"]), `{"bots":0,"clicks":9,"people":9,"visitors":9}`)
	testkit.Equal(t, "links", encode(t, a.body["links"]), `[{"clicks":4,"domain_id":null,"hash":"`+hashes[2]+
		`","short_url":"https://sho.rt/`+hashes[2]+`"},`+
		`{"clicks":3,"domain_id":null,"hash":"`+hashes[1]+`","short_url":"https://sho.rt/`+hashes[1]+`"}]`)
	a = owner.get(t, "/api/v1/report?browser=Firefox&tz=America/New_York&"+days)
	testkit.Equal(t, "totals of a browser", encode(t, a.body["totals"]), `{"bots":0,"clicks":3,"people":3,`+
		`"visitors":null}`)
	a = other.get(t, "/api/v1/report?"+days)
	testkit.Equal(t, "totals of another account", encode(t, a.body["totals"]), `{"bots":0,"clicks":0,"people":0,`+
		`"visitors":0}`)
	testkit.Equal(t, "its links", encode(t, a.body["links"]), `[]`)
	owner.get(t, "/api/v1/report?from=2026-11-21&to=2026-11-20&limit=x").wantInvalid(t, "to", "limit")

	tagged := owner.link(t, map[string]any{"long_url": "https://example.com/", "tags": []string{"sale"}})
	link, err := schema.FindOwnedLink(t.Context(), s.links, owner.account.ID, tagged, nil)
	testkit.Must(t, err)
	s.click(t, link.ID, 7)
	for query, clicks := range map[string]string{"tag=sale": "7", "tag=none": "0", "tag=": "16", "domain_id=0": "16",
		"domain_id=0&tag=sale": "7"} {
		body := owner.get(t, "/api/v1/report?"+days+"&"+query).body
		testkit.Equal(t, "clicks with "+query, encode(t, body["totals"].(map[string]any)["clicks"]), clicks)
	}
	owner.get(t, "/api/v1/report?tag=A&domain_id=x&limit=0").wantInvalid(t, "tag", "domain_id", "limit")
	for _, id := range []int64{9, -1, other.addDomain(t, "go.example.net", true)} {
		owner.get(t, fmt.Sprint("/api/v1/report?device=phone&country=de&language=German&domain_id=", id)).
			wantInvalid(t, "device", "country", "language", "domain_id")
	}
	mine := owner.addDomain(t, "go.example.org", false)
	testkit.Equal(t, "clicks on a domain without links",
		encode(t, owner.get(t, fmt.Sprint("/api/v1/report?domain_id=", mine)).body["totals"]),
		`{"bots":0,"clicks":0,"people":0,"visitors":0}`)
}

func TestOutageOfReports(t *testing.T) {
	for method, what := range map[string]string{
		"Report": "Clicks cannot be read", "ReportDetail": "Clicks cannot be read", "LinksByID": "Links cannot be read",
	} {
		s := startFaulty(t, storetest.FaultOf(down, method))
		wantOutage(t, s.caller(t, "owner@example.org").get(t, "/api/v1/report"), what)
	}
}
