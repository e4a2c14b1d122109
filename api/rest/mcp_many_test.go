//go:build !race

// Sequential tests of many rows: the race detector could find nothing in them, and slows SQLite down twentyfold.

package rest_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"linkstream/api/rest/resttest"
	"linkstream/schema/testkit"
)

func TestToolsFindManyLinks(t *testing.T) {
	t.Parallel()
	const many, tagged = 10_000, 400
	s := start(t)
	owner := s.caller(t, "many@example.org")
	for begin := 0; begin < many; begin += 1000 {
		links := slices.Repeat([]map[string]any{{"long_url": anyURL}}, 1000)
		for i := range tagged * 1000 / many {
			links[i] = map[string]any{"long_url": anyURL, "tags": []string{"few"}}
		}
		owner.request(t, http.MethodPost, "/api/v1/links/bulk", encode(t, map[string]any{"links": links})).
			want(t, http.StatusOK)
	}
	assistant := owner.assistant(t)
	walk := func(arguments resttest.Object, want int) {
		t.Helper()
		found := map[any]int{}
		for more := true; more; more = arguments["after"] != nil {
			data, raw, failed := assistant.Ask(t, "find", arguments)
			links, _ := data["links"].([]any)
			if failed || len(links) == 0 || len(links) > 20 || len(raw) > 8<<10 {
				t.Fatalf("%d links in %d bytes of %v: %.200s", len(links), len(raw), arguments, raw)
			}
			for _, link := range links {
				found[link.(resttest.Object)["hash"]]++
			}
			arguments["after"] = data["next"]
		}
		testkit.Equal(t, "links", len(found), want)
		for hash, times := range found {
			testkit.Equal(t, fmt.Sprint(hash, ": times"), times, 1)
		}
	}
	walk(resttest.Object{"tag": "few"}, tagged)
	walk(resttest.Object{"tag": "few", "sort": "-clicks"}, tagged)
	walk(resttest.Object{"sort": "created_at"}, many)
	clicked := assistant.Tell(t, "report", resttest.Object{"list": "links"})
	testkit.Equal(t, "clicked links", clicked["links"], any([]any{}))
	for _, hash := range []string{"a", "b", "c"} {
		owner.link(t, map[string]any{"long_url": anyURL, "alias": "gone" + hash})
		assistant.Tell(t, "delete", resttest.Object{"hash": "gone" + hash})
	}
	walk(resttest.Object{"deleted": true}, 3)
}
