package rest_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"linkstream/api/links"
	"linkstream/api/transfer"
	"linkstream/schema"
	"linkstream/schema/blocklist"
	"linkstream/schema/testkit"
)

// An account gets one export at a time, and does not delay other accounts.
func TestExportsTakeTurns(t *testing.T) {
	t.Parallel()
	held, began := make(chan struct{}), make(chan struct{})
	var reads atomic.Int64
	s := startFaulty(t, func(_ context.Context, method string) error {
		if method == "LinksAfter" && reads.Add(1) == 1 {
			close(began)
			<-held
		}
		return nil
	})
	owner, other := s.caller(t, "a@example.org"), s.caller(t, "b@example.org")
	hash := owner.link(t, map[string]any{"long_url": anyURL})
	other.link(t, map[string]any{"long_url": anyURL})
	second := owner
	second.addToken(t)
	var first sync.WaitGroup
	first.Go(func() {
		if a := owner.get(t, "/api/v1/export?format=csv"); !strings.Contains(a.raw, hash) {
			t.Errorf("%d %s", a.status, a.raw)
		}
	})
	<-began
	for _, format := range []string{"csv", "ndjson"} {
		a := second.get(t, "/api/v1/export?format="+format)
		a.wantKeys(t, http.StatusTooManyRequests, "message")
		testkit.Equal(t, "Retry-After", a.header.Get("Retry-After"), "5")
		testkit.Equal(t, "status for another account", other.get(t, "/api/v1/export?format="+format).status, http.StatusOK)
	}
	close(held)
	first.Wait()
	testkit.Equal(t, "status later", second.get(t, "/api/v1/export?format=csv").status, http.StatusOK)
}

// crowded is a store that says of each account that it has a number of links.
type crowded struct {
	schema.Database
	links int64
}

func (s *crowded) Links(
	ctx context.Context, accountID int64, filter schema.LinkFilter, page int64,
) ([]schema.Link, int64, error) {
	found, _, err := s.Database.Links(ctx, accountID, filter, page)
	return found, s.links, err
}

func TestExportsCountByTheirLinks(t *testing.T) {
	t.Parallel()
	store := &crowded{}
	s := startWrapped(t, nil, func(links schema.Database) schema.Database { store.Database = links; return store })
	for links, want := range map[int64]int{0: 1, 1: 1, 10_000: 1, 10_001: 2, 25_000: 3, 1_000_000: 100} {
		owner := s.caller(t, fmt.Sprintf("%d@example.org", links))
		store.links = links
		a := owner.get(t, "/api/v1/export?format=ndjson")
		left, err := strconv.Atoi(a.header.Get("X-RateLimit-Remaining"))
		testkit.Must(t, err)
		testkit.Equal(t, fmt.Sprintf("status and requests for %d links", links), fmt.Sprint(a.status, 2000-left),
			fmt.Sprint(http.StatusOK, want))
	}
	store.links = 20_000_001
	a := s.caller(t, "many@example.org").get(t, "/api/v1/export?format=csv")
	a.wantKeys(t, http.StatusTooManyRequests, "message")
}

// An export of a service can be imported by another one, and is the same again there.
func TestExportsCanBeImported(t *testing.T) {
	t.Parallel()
	s, elsewhere := start(t), start(t)
	owner, heir := s.caller(t, "a@example.org"), elsewhere.caller(t, "b@example.org")
	for i, fields := range []map[string]any{
		{"title": "=1+1", "tags": []string{"b", "a"}}, {"expires_at": "2099-01-01T00:00:00+00:00"},
		{"expired_url": "https://example.com/ended", "forward_query": true, "max_clicks": 7},
		{"rules": []any{map[string]any{"name": "de", "if": map[string]any{"language": []string{"de"}},
			"url": "https://example.com/de"}}},
		{"variants": []any{map[string]any{"name": "x", "url": "https://example.com/x", "weight": 50},
			map[string]any{"name": "y", "url": "https://example.com/y", "weight": 50}}},
		{"card": map[string]any{"title": "a, \"b\"", "description": ";d", "image": nil}},
	} {
		fields["long_url"], fields["custom_alias"] = fmt.Sprintf("https://example.com/%d?a=b,c", i), fmt.Sprintf("link-%d", i)
		owner.link(t, fields)
	}
	owner.patch(t, "/api/v1/links/link-0", `{"is_active":false}`).want(t, http.StatusOK)
	file := owner.get(t, "/api/v1/export?format=csv").raw
	list, err := blocklist.Open("", nil)
	testkit.Must(t, err)
	shortener := links.New(schema.MustParseBaseURL(edgeURL), elsewhere.links, elsewhere.links, list)
	report, err := transfer.NewImporter(shortener, elsewhere.links, elsewhere.links, elsewhere.clicks).Import(t.Context(),
		heir.account.ID, strings.NewReader(file), transfer.Options{})
	testkit.Must(t, err)
	testkit.Equal(t, fmt.Sprintf("export after %+v", report), heir.get(t, "/api/v1/export?format=csv").raw, file)
}
