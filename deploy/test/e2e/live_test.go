package e2e_test

import (
	"testing"
	"time"

	"linkstream/api/rest/resttest"
	"linkstream/schema/testkit"
)

func TestLiveCounts(t *testing.T) {
	t.Parallel()
	onBothKinds(t, testLiveCounts)
}

func testLiveCounts(t *testing.T, s *system) {
	owner := s.owner()
	for alias, tag := range map[string]string{"heard": "sale", "tagged": "sale", "silent": "other"} {
		owner.Link(t, object{"long_url": "https://example.com/", "custom_alias": alias, "tags": []string{tag}})
	}
	ofLink, ofTag, ofAll := owner.Live(t, "/api/v1/links/heard/live"), owner.Live(t, "/api/v1/live?tag=sale"), owner.Live(t, "/api/v1/live")
	for _, stream := range []*resttest.Stream{ofLink, ofTag, ofAll} {
		stream.WaitCounts(t, 0, 0)
	}
	person, bot := []string{"User-Agent", agents[0].header}, []string{"User-Agent", agents[8].header}
	s.click(t, "heard", person...)
	s.click(t, "heard", bot...)
	s.click(t, "tagged", person...)
	s.click(t, "silent", bot...)
	ofLink.WaitCounts(t, 1, 1)
	ofTag.WaitCounts(t, 2, 1)
	ofAll.WaitCounts(t, 2, 2)
	t.Run("the first state of a new stream is what stats says", func(t *testing.T) {
		again := owner.Live(t, "/api/v1/links/heard/live")
		testkit.Equal(t, "clicks", number(t, again.WaitCounts(t, 1, 1).Counts, "total_clicks"), owner.Total(t, "heard"))
		again.Close()
	})
	t.Run("an event comes within a second after stats has the click", func(t *testing.T) {
		testkit.Follows(t, time.Second, func(try int) func() error {
			s.click(t, "heard", person...)
			owner.WaitTotal(t, "heard", int64(3+try))
			return func() error { ofLink.WaitCounts(t, int64(2+try), 1); return nil }
		})
	})
}
