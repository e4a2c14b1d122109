package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/api/dashboard"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// slowReports counts one more click on one more link with each reading, which takes a while.
type slowReports struct {
	schema.ReportStore
	takes          time.Duration
	fails          error
	began, running atomic.Int64
	tooMany        atomic.Bool // more than two readings at the same time
}

func (s *slowReports) AccountReport(ctx context.Context, _ int64, since, linksSince time.Time) (schema.AccountReport, error) {
	if !since.Equal(linksSince) {
		return schema.AccountReport{}, fmt.Errorf("days since %v, links since %v", since, linksSince)
	}
	n := s.began.Add(1)
	if s.running.Add(1) > 2 {
		s.tooMany.Store(true)
	}
	defer s.running.Add(-1)
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return schema.AccountReport{}, ctx.Err()
	}
	return schema.AccountReport{Days: []schema.DayReport{{People: n}}, Links: []schema.LinkCount{{LinkID: n, Total: 1}}}, s.fails
}

func TestTopLinksOfManyLinks(t *testing.T) {
	day := utc("2000-01-01T00:00:00Z") // the clock of a bubble begins here
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	watch := func(t *testing.T, reports *slowReports) (of func(total int64) string) {
		top := dashboard.NewTopWatch(reports, quiet)
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() { top.Run(ctx); close(stopped) }()
		t.Cleanup(func() { cancel(); <-stopped })
		return func(total int64) string { return top.Of(t.Context(), 1, day, total) }
	}
	want := func(t *testing.T, what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	t.Run("are on the first page if they are found at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			want(t, "first page", watch(t, &slowReports{takes: dashboard.RankWait / 2})(1), "1 ")
		})
	})
	t.Run("are on a later page if not, and stay while no click is counted", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			reports := &slowReports{takes: time.Second}
			of := watch(t, reports)
			begin := time.Now()
			want(t, "first page", of(1), "unknown")
			testkit.Equal(t, "wait of the first page", time.Since(begin), dashboard.RankWait)
			want(t, "page during the reading", of(1), "unknown")
			time.Sleep(time.Second)
			for range 10 {
				want(t, "page after it", of(1), "1 ")
				time.Sleep(dashboard.RankAge / 20)
			}
			testkit.Equal(t, "readings", reports.began.Load(), 1)
		})
	})
	t.Run("are of an earlier time while clicks are counted, and read again after a pause", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			reports := &slowReports{takes: time.Second}
			of := watch(t, reports)
			of(1)
			time.Sleep(time.Second)
			synctest.Wait()
			want(t, "page with a click more", of(2), "1 00:00:00 UTC")
			time.Sleep(dashboard.RankShare*time.Second - 2*time.Second)
			of(2)
			testkit.Equal(t, "readings during the pause", reports.began.Load(), 1)
			time.Sleep(2 * time.Second)
			want(t, "page that begins a reading", of(2), "1 00:00:00 UTC")
			synctest.Wait()
			testkit.Equal(t, "readings after the pause", reports.began.Load(), 2)
			time.Sleep(time.Second)
			synctest.Wait()
			want(t, "page after it", of(2), "2 ")
			want(t, "page with yet another click", of(3), "2 00:00:21 UTC")
		})
	})
	t.Run("of another day are of an earlier time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			top := dashboard.NewTopWatch(&slowReports{takes: dashboard.RankWait / 2}, quiet)
			want(t, "one day", top.Of(t.Context(), 1, day, 1), "1 ")
			want(t, "the next day", top.Of(t.Context(), 1, day.AddDate(0, 0, 1), 1), "1 00:00:00 UTC")
		})
	})
	t.Run("are forgotten when they are old", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			reports := &slowReports{takes: time.Second}
			of := watch(t, reports)
			of(1)
			time.Sleep(dashboard.RankAge)
			want(t, "page", of(1), "unknown")
		})
	})
	t.Run("are not asked for without clicks", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			reports := &slowReports{}
			want(t, "page", watch(t, reports)(0), "")
			testkit.Equal(t, "readings", reports.began.Load(), 0)
		})
	})
	t.Run("stay when a reading fails, which is not repeated at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			reports := &slowReports{}
			of := watch(t, reports)
			of(1)
			reports.fails = errors.New("the store is away")
			time.Sleep(dashboard.RankPause)
			for range 3 {
				want(t, "page", of(9), "1 00:00:00 UTC")
				synctest.Wait()
			}
			testkit.Equal(t, "readings", reports.began.Load(), 2)
		})
	})
	t.Run("of many accounts are read two at a time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			reports := &slowReports{takes: time.Second}
			top := dashboard.NewTopWatch(reports, quiet)
			for account := range int64(6) {
				top.Of(t.Context(), account, day, 1)
			}
			synctest.Wait()
			testkit.Equal(t, "readings under way", reports.running.Load(), 2)
			time.Sleep(3 * time.Second)
			testkit.Equal(t, "readings", reports.began.Load(), 6)
			testkit.Equal(t, "more than two at the same time", reports.tooMany.Load(), false)
		})
	})
	t.Run("are kept of the accounts that asked last", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			reports := &slowReports{takes: time.Millisecond}
			top := dashboard.NewTopWatch(reports, quiet)
			for account := range int64(dashboard.MaxRankings + 1) {
				top.Of(t.Context(), account, day, account+1)
			}
			want(t, "second account", top.Of(t.Context(), 1, day, 2), "2 ")
			testkit.Equal(t, "readings", reports.began.Load(), dashboard.MaxRankings+1)
			reports.takes = time.Second
			want(t, "first account", top.Of(t.Context(), 0, day, 1), "unknown")
			time.Sleep(time.Second)
		})
	})
	t.Run("are not read any more after the end, which interrupts readings", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			reports := &slowReports{takes: 5 * time.Second}
			top := dashboard.NewTopWatch(reports, quiet)
			top.Of(t.Context(), 1, day, 1)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			begin := time.Now()
			top.Run(ctx)
			testkit.Equal(t, "time to stop", time.Since(begin), 0)
			testkit.Equal(t, "readings under way", reports.running.Load(), 0)
			want(t, "page", top.Of(t.Context(), 2, day, 1), "unknown")
			testkit.Equal(t, "readings", reports.began.Load(), 1)
		})
	})
}

// TestOverviewOfManyLinks holds the reading of all links until the page is there.
func TestOverviewOfManyLinks(t *testing.T) {
	const secret = "secret cause"
	reading, release := make(chan struct{}, 1), make(chan struct{})
	var failing atomic.Bool
	s := startFaulty(t, func(ctx context.Context, method string) error {
		if method == "AccountDays" && failing.Load() {
			return errors.New(secret)
		}
		if method != "AccountReport" {
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
	now := time.Now().UTC()
	many := schema.LinkBatch{AccountID: s.account.ID}
	for i := range dashboard.RankedAtOnce {
		many.Links = append(many.Links, schema.Link{AccountID: s.account.ID, Hash: fmt.Sprint("many-", i), URL: "https://example.org/",
			Active: true, CreatedAt: now})
	}
	testkit.Must(t, s.links.CreateLinks(t.Context(), &many))
	popular := s.addLink(t, "popular", "https://example.org/popular")
	s.count(t, click{link: popular, at: now, times: 7})
	b := s.signedIn(t)
	const adding = "The clicks on 1,001 links are being added up"
	b.get("/dashboard").want(t, http.StatusOK, "1,001 links", "Today, UTC 7", adding)
	<-reading
	b.get("/dashboard?part=report").want(t, http.StatusOK, "Today, UTC 7", adding)
	close(release)
	testkit.Eventually(t, "the page has the link", func() bool {
		return strings.Contains(b.get("/dashboard?part=report").text(), "sho.rt/ popular https://example.org/popular 7")
	})
	s.count(t, click{link: popular, at: now, times: 1})
	b.get("/dashboard").want(t, http.StatusOK, "Today, UTC 8", "Clicks on links as of")
	failing.Store(true)
	page := b.get("/dashboard")
	page.want(t, http.StatusOK, "1,001 links", "Clicks cannot be shown at the moment")
	if strings.Contains(page.body, secret) || !strings.Contains(s.log.String(), secret) {
		t.Error("the cause is on the page, or not in the log")
	}
}
