package resttest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// dayJSON returns a day of a history, some days ago.
func dayJSON(ago int, clicks string) string {
	return fmt.Sprintf(`{"date":%q,"clicks":%s}`, dateAgo(ago), clicks)
}

func dateAgo(days int) string { return historyBegan.AddDate(0, 0, -days).Format(time.DateOnly) }

// historyBegan is the day of all dates in the tests: they may run at midnight.
var historyBegan = time.Now().UTC()

// historyOf returns the body of a history.
func historyOf(days ...string) string { return `{"days":[` + strings.Join(days, ",") + `]}` }

// testHistory imports clicks that another service has counted, and reads them wherever they count.
func testHistory(t *testing.T, s System) {
	owner, tag := s.account(t), label()
	alias, other := label(), label()
	for _, name := range []string{alias, other} {
		owner.Alias(t, name, "https://example.com/")
		owner.Call(t, http.MethodPatch, "/api/v1/links/"+name, `{"tags":["`+tag+`"]}`).Want(t, http.StatusOK)
	}
	path := "/api/v1/links/" + alias + "/history/bitly"
	put := func(path, body string, clicks int) {
		t.Helper()
		for range 2 {
			got := owner.Call(t, http.MethodPut, path, body).Want(t, http.StatusOK).Body
			Shape{"success": yes, "clicks": integer}.Check(t, got)
			testkit.Equal(t, "clicks", Number(t, got, "clicks"), int64(clicks))
		}
	}
	wantImported(t, owner, alias, tag, 0, nil)
	live := owner.Live(t, "/api/v1/links/"+alias+"/live")
	shown := func(clicks int64) {
		t.Helper()
		for e := live.Next(t); Number(t, e.Counts, "total_clicks") != clicks; {
			e = live.Next(t)
		}
	}
	put(path, historyOf(dayJSON(2, "300"), dayJSON(40, "1000"), dayJSON(3, "0")), 1300)
	put("/api/v1/links/"+alias+"/history/old-site_2", historyOf(dayJSON(2, "7")), 7)
	put("/api/v1/links/"+other+"/history/bitly", historyOf(dayJSON(1, "20")), 20)
	wantImported(t, owner, alias, tag, 1307, map[string]string{dateAgo(0): "0", dateAgo(2): "307"})
	wantImported(t, owner, other, tag, 20, map[string]string{dateAgo(1): "20"})
	shown(1307)

	got := owner.Get(t, path).Want(t, http.StatusOK).Body
	Shape{"success": yes, "source": text, "clicks": integer, "days": array}.Check(t, got)
	days := []any{Object{"date": dateAgo(40), "clicks": 1000}, Object{"date": dateAgo(3), "clicks": 0},
		Object{"date": dateAgo(2), "clicks": 300}}
	testkit.Equal(t, "history", fmt.Sprintf("%v %v %v", got["source"], got["clicks"], got["days"]),
		fmt.Sprintf("bitly 1300 %v", days))
	put(path, historyOf(dayJSON(0, "5")), 5) // replaces all days
	wantImported(t, owner, alias, tag, 12, map[string]string{dateAgo(0): "5", dateAgo(2): "7"})
	owner.Call(t, http.MethodDelete, path, "").Want(t, http.StatusOK)
	for _, method := range []string{http.MethodDelete, http.MethodGet} {
		owner.Call(t, method, path, "").Want(t, http.StatusNotFound)
	}
	wantImported(t, owner, alias, tag, 7, map[string]string{dateAgo(0): "0", dateAgo(2): "7"})
	shown(7)
	live.Close()

	owner.Call(t, http.MethodDelete, "/api/v1/links/"+alias, "").Want(t, http.StatusOK)
	owner.Call(t, http.MethodPut, path, historyOf()).Want(t, http.StatusNotFound)
	owner.Call(t, http.MethodPost, "/api/v1/links/"+alias+"/restore", "").Want(t, http.StatusOK)
	wantImported(t, owner, alias, tag, 7, map[string]string{dateAgo(2): "7"})
	stranger := s.account(t)
	for _, method := range []string{http.MethodPut, http.MethodGet, http.MethodDelete} {
		stranger.Call(t, method, path, historyOf()).Want(t, http.StatusNotFound)
	}
}

// wantImported requires that a link has imported clicks, and no others, in its statistics, lists and reports. ofDays
// are the imported clicks of some of the last 30 days.
func wantImported(t *testing.T, owner account, alias, tag string, clicks int, ofDays map[string]string) {
	t.Helper()
	all := fmt.Sprint(clicks)
	stats := owner.Get(t, "/api/v1/stats/"+alias).Want(t, http.StatusOK).Body["stats"].(Object)
	testkit.Equal(t, "total_clicks", fmt.Sprint(stats["total_clicks"]), all)
	devices, browsers := fmt.Sprintf("map[other:%d]", clicks), fmt.Sprintf("map[Imported:%d]", clicks)
	if clicks == 0 {
		devices, browsers = "map[]", "map[]"
	}
	testkit.Equal(t, "devices and browsers", fmt.Sprint(stats["devices"], stats["browsers"]), devices+" "+browsers)
	byDay := 0
	for _, day := range stats["clicks_by_day"].([]any) {
		byDay += int(Number(t, day.(Object), "total"))
	}
	testkit.Equal(t, "sum of clicks_by_day", byDay, clicks)
	var link Object
	testkit.Eventually(t, "the link has its clicks in time", func() bool {
		link = owner.Get(t, "/api/v1/links/"+alias).Want(t, http.StatusOK).Body["link"].(Object)
		return link["clicks"] != nil
	})
	testkit.Equal(t, "clicks of the link", fmt.Sprint(link["clicks"]), all)
	for _, item := range owner.Get(t, "/api/v1/links?sort=-clicks&q="+alias).Want(t, http.StatusOK).Body["data"].([]any) {
		testkit.Equal(t, "clicks in the list", fmt.Sprint(item.(Object)["clicks"]), all)
	}
	report := owner.Get(t, "/api/v1/links/"+alias+"/report").Want(t, http.StatusOK).Body
	wantSums(t, report)
	for _, point := range report["series"].([]any) {
		at := fmt.Sprint(point.(Object)["at"])[:len(time.DateOnly)]
		if want, named := ofDays[at]; named {
			testkit.Equal(t, "imported on "+at, fmt.Sprint(point.(Object)["imported"]), want)
		}
	}
	account := owner.Get(t, "/api/v1/report?tag="+tag).Want(t, http.StatusOK).Body
	wantSums(t, account)
	inLinks := 0
	for _, top := range account["links"].([]any) {
		inLinks += int(Number(t, top.(Object), "clicks"))
	}
	testkit.Equal(t, "sum of links", fmt.Sprint(inLinks), fmt.Sprint(account["totals"].(Object)["clicks"]))
}

// wantSums requires that the imported clicks of a report are all of its clicks, in the totals and in the series.
func wantSums(t *testing.T, report Object) {
	t.Helper()
	totals, imported := report["totals"].(Object), 0
	for _, point := range report["series"].([]any) {
		if point.(Object)["imported"] != nil {
			imported += int(Number(t, point.(Object), "imported"))
		}
	}
	testkit.Equal(t, "totals", fmt.Sprintf("%v %v %v", totals["clicks"], totals["people"], totals["bots"]),
		fmt.Sprintf("%d 0 0", imported))
	if imported > 0 {
		testkit.Equal(t, "totals.imported", fmt.Sprint(totals["imported"]), fmt.Sprint(imported))
	}
	for _, hour := range report["week"].([]any) {
		testkit.Equal(t, "people of an hour of the week", Number(t, hour.(Object), "people"), int64(0))
	}
	for list, names := range report {
		if list != "series" && list != "links" && list != "week" {
			if names, isList := names.([]any); isList {
				testkit.Equal(t, list, len(names), 0)
			}
		}
	}
}

// testInvalidHistories names every invalid field.
func testInvalidHistories(t *testing.T, s System) {
	owner, alias := s.account(t), label()
	owner.Alias(t, alias, "https://example.com/")
	path := "/api/v1/links/" + alias + "/history/"
	many := make([]string, 5001)
	for i := range many {
		many[i] = dayJSON(i, "1")
	}
	for name, c := range map[string]struct {
		source, body string
		fields       []string
	}{
		"no days":       {"bitly", `{}`, []string{"days"}},
		"null":          {"bitly", `{"days":null}`, []string{"days"}},
		"an object":     {"bitly", `{"days":{}}`, []string{"days"}},
		"text":          {"bitly", historyOf(`"x"`, dayJSON(1, "1")), []string{"days.0"}},
		"too many days": {"bitly", historyOf(many...), []string{"days"}},
		"a date twice":  {"bitly", historyOf(dayJSON(1, "1"), dayJSON(2, "1"), dayJSON(1, "2")), []string{"days.2.date"}},
		"tomorrow":      {"bitly", historyOf(dayJSON(-2, "1")), []string{"days.0.date"}},
		"no date": {"bitly", historyOf(`{"clicks":1}`, `{"date":7,"clicks":1}`), []string{"days.0.date",
			"days.1.date"}},
		"no day":           {"bitly", historyOf(`{"date":"2026-02-30","clicks":1}`), []string{"days.0.date"}},
		"a time":           {"bitly", historyOf(`{"date":"2026-01-30T00:00:00Z","clicks":1}`), []string{"days.0.date"}},
		"a short date":     {"bitly", historyOf(`{"date":"2026-1-3","clicks":1}`), []string{"days.0.date"}},
		"the time before":  {"bitly", historyOf(`{"date":"1969-12-31","clicks":1}`), []string{"days.0.date"}},
		"no clicks":        {"bitly", historyOf(`{"date":"2026-01-30"}`), []string{"days.0.clicks"}},
		"fewer than none":  {"bitly", historyOf(dayJSON(1, "-1")), []string{"days.0.clicks"}},
		"half a click":     {"bitly", historyOf(dayJSON(1, "1.5")), []string{"days.0.clicks"}},
		"clicks as text":   {"bitly", historyOf(dayJSON(1, `"1"`)), []string{"days.0.clicks"}},
		"too many clicks":  {"bitly", historyOf(dayJSON(1, "1000000001")), []string{"days.0.clicks"}},
		"capitals":         {"Bitly", historyOf(), []string{"source"}},
		"a long name":      {strings.Repeat("x", 33), historyOf(), []string{"source"}},
		"another alphabet": {"%C3%BC", historyOf(), []string{"source"}},
	} {
		t.Run(name, func(t *testing.T) {
			owner.Call(t, http.MethodPut, path+c.source, c.body).WantError(t, http.StatusUnprocessableEntity, c.fields...)
		})
	}
	for i := range 5 {
		owner.Call(t, http.MethodPut, path+fmt.Sprint("source-", i), historyOf()).Want(t, http.StatusOK)
	}
	owner.Call(t, http.MethodPut, path+"sixth", historyOf()).WantError(t, http.StatusUnprocessableEntity, "source")
	owner.Call(t, http.MethodPut, path+"source-0", historyOf(many[:5000]...)).Want(t, http.StatusOK) // 200 KB
}
