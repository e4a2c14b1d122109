package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"linkstream/api/clickreport"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// TestOverviewOfManyLinks holds the reading of all links until the page is there.
func TestOverviewOfManyLinks(t *testing.T) {
	const secret = "secret cause"
	reading, release := make(chan struct{}, 1), make(chan struct{})
	var failing atomic.Bool
	var reports atomic.Int64
	s := startFaulty(t, func(ctx context.Context, method string) error {
		if method != "Report" {
			return nil
		}
		if failing.Load() {
			return errors.New(secret)
		}
		if reports.Add(1) != 3 { // the first page reads the days, twice, and then its ranking is read in the background
			return nil
		}
		select {
		case reading <- struct{}{}:
		default:
		}
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}, unpaced)
	now := s.now().UTC()
	many := schema.LinkBatch{AccountID: s.account.ID}
	for i := range clickreport.RankedAtOnce {
		many.Links = append(many.Links, schema.Link{AccountID: s.account.ID, Hash: fmt.Sprint("many-", i),
			URL:    "https://example.org/",
			Active: true, CreatedAt: now})
	}
	testkit.Must(t, s.links.CreateLinks(t.Context(), &many))
	popular := s.addLink(t, "popular", "https://example.org/popular")
	s.count(t, click{link: popular, at: now, times: 7})
	b := s.signedIn(t)
	const adding = "The clicks on 1,001 links are being added up"
	b.get("/dashboard").want(t, http.StatusOK, "1,001 links", "Today 7", adding)
	<-reading
	b.get("/dashboard?part=report").want(t, http.StatusOK, "Today 7", adding)
	close(release)
	testkit.Eventually(t, "the page has the link", func() bool {
		return strings.Contains(b.get("/dashboard?part=report").text(), "sho.rt/ popular https://example.org/popular 7")
	})
	s.count(t, click{link: popular, at: now, times: 1})
	b.get("/dashboard").want(t, http.StatusOK, "Today 8", "Clicks on links as of")
	failing.Store(true)
	page := b.get("/dashboard")
	page.want(t, http.StatusOK, "1,001 links", "Clicks cannot be shown at the moment")
	if strings.Contains(page.body, secret) || !strings.Contains(s.log.String(), secret) {
		t.Error("the cause is on the page, or not in the log")
	}
}
