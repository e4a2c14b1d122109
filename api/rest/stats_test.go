package rest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// click stores n clicks of a link: by Chrome on a desktop on 20 November 2026, the last by Firefox on a mobile a day
// later.
func (s *testService) click(t *testing.T, linkID int64, n int) {
	t.Helper()
	at := time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)
	s.count(t, linkID, n-1, at, schema.Desktop, "Chrome")
	s.count(t, linkID, 1, at.AddDate(0, 0, 1), schema.Mobile, "Firefox")
}

// count stores n clicks of a link of the first account.
func (s *testService) count(t *testing.T, linkID int64, n int, at time.Time, device schema.Device, browser string) {
	t.Helper()
	marks, err := s.clicks.LaneMarks(t.Context(), []schema.Lane{{Number: 1}})
	testkit.Must(t, err)
	var batch schema.ClickBatch
	batch.Reset(0, int64(marks[0]))
	for range n {
		batch.Offset = append(batch.Offset, batch.Next)
		batch.Lane = append(batch.Lane, schema.Lane{Number: 1})
		batch.Seq = append(batch.Seq, uint64(batch.Next)+1)
		batch.LinkID = append(batch.LinkID, linkID)
		batch.ClickedAt = append(batch.ClickedAt, at)
		batch.Device = append(batch.Device, device)
		batch.Browser = append(batch.Browser, browser)
		batch.AccountID, batch.Visitor = append(batch.AccountID, 1), append(batch.Visitor, uint64(batch.Next)+1)
		batch.Next++
	}
	testkit.Must(t, s.clicks.InsertClicks(t.Context(), storetest.NoNames(&batch)))
}

func TestStats(t *testing.T) {
	s := start(t)
	owner := s.caller(t, "a@example.org")
	hash := owner.link(t, map[string]any{"long_url": "https://example.com/?<&>"})
	link, err := schema.FindLink(t.Context(), s.links, 0, hash)
	testkit.Must(t, err)
	wantListed := func(t *testing.T, text string) {
		t.Helper()
		if a := owner.get(t, "/api/v1/links"); !strings.Contains(a.raw, text) {
			t.Errorf("%s is not in the list: %s", text, a.raw)
		}
	}

	t.Run("4 GET stats: success is 200 with exactly the fields of the table", func(t *testing.T) {
		s.click(t, link.ID, 3)
		want := fmt.Sprintf(`{"success":true,"hash":%q,"short_url":"https://sho.rt/%s",`+
			`"original_url":"https://example.com/?<&>",`+
			`"is_active":true,"stats":{"total_clicks":3,"clicks_by_day":[{"date":"2026-11-20","total":2},`+
			`{"date":"2026-11-21","total":1}],"devices":{"desktop":2,"mobile":1},"browsers":{"Chrome":2,"Firefox":1}}}`, hash,
			hash)
		testkit.Equal(t, "answer", strings.TrimSpace(owner.get(t, "/api/v1/stats/"+hash).raw), want)
		wantListed(t, `"clicks":3,"is_active":true`)
	})
	t.Run("2 Link: is_active is false for an inactive link", func(t *testing.T) {
		storetest.SetActive(t, s.links, link.DomainID, link.Hash, false)
		testkit.Equal(t, "is_active", owner.get(t, "/api/v1/stats/"+hash).body["is_active"], any(false))
		wantListed(t, `"clicks":3,"is_active":false`)
	})
}
