package clickreport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/api/clickreport"
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

func (s *slowReports) Report(ctx context.Context, q schema.ReportQuery) (schema.Report, error) {
	if !q.TopLinks || !q.NoNames || len(q.Bounds) != 2 {
		return schema.Report{}, fmt.Errorf("the query is %+v", q)
	}
	n := s.began.Add(1)
	if s.running.Add(1) > 2 {
		s.tooMany.Store(true)
	}
	defer s.running.Add(-1)
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return schema.Report{}, ctx.Err()
	}
	return schema.Report{Series: []schema.Period{{People: n}}, Links: []schema.LinkCount{{LinkID: n, Total: 1}}}, s.fails
}

// rankingOf describes the ranking of an account that has total clicks since a day: "unknown", or its first link and its
// time.
func rankingOf(t *testing.T, top *clickreport.Rankings, account int64, since time.Time, total int64) (text string) {
	found := top.Of(t.Context(), account, since, total)
	if found == nil {
		return "unknown"
	}
	for _, link := range found.Links {
		text += fmt.Sprint(link.LinkID, " ")
	}
	if !found.Exact {
		text += found.At.Format(time.TimeOnly)
	}
	return text
}

func TestTopLinksOfManyLinks(t *testing.T) {
	day := time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC) // the clock of a bubble begins here
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	watch := func(t *testing.T, reports *slowReports) (of func(total int64) string) {
		top := clickreport.NewRankings(reports, quiet)
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() { top.Run(ctx); close(stopped) }()
		t.Cleanup(func() { cancel(); <-stopped })
		return func(total int64) string { return rankingOf(t, top, 1, day, total) }
	}
	want := func(t *testing.T, what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	t.Run("are on the first page if they are found at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			want(t, "first page", watch(t, &slowReports{takes: 25 * time.Millisecond})(1), "1 ")
		})
	})
	t.Run("are on a later page if not, and stay while no click is counted", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			reports := &slowReports{takes: time.Second}
			of := watch(t, reports)
			begin := time.Now()
			want(t, "first page", of(1), "unknown")
			testkit.Equal(t, "wait of the first page", time.Since(begin), 50*time.Millisecond)
			want(t, "page during the reading", of(1), "unknown")
			time.Sleep(time.Second)
			for range 10 {
				want(t, "page after it", of(1), "1 ")
				time.Sleep(30 * time.Second)
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
			want(t, "page with a click more", of(2), "1 00:00:00")
			time.Sleep(18 * time.Second)
			of(2)
			testkit.Equal(t, "readings during the pause", reports.began.Load(), 1)
			time.Sleep(2 * time.Second)
			want(t, "page that begins a reading", of(2), "1 00:00:00")
			synctest.Wait()
			testkit.Equal(t, "readings after the pause", reports.began.Load(), 2)
			time.Sleep(time.Second)
			synctest.Wait()
			want(t, "page after it", of(2), "2 ")
			want(t, "page with yet another click", of(3), "2 00:00:21")
		})
	})
	t.Run("of another day are of an earlier time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			top := clickreport.NewRankings(&slowReports{takes: 25 * time.Millisecond}, quiet)
			want(t, "one day", rankingOf(t, top, 1, day, 1), "1 ")
			want(t, "the next day", rankingOf(t, top, 1, day.AddDate(0, 0, 1), 1), "1 00:00:00")
		})
	})
	t.Run("are forgotten when they are old", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			reports := &slowReports{takes: time.Second}
			of := watch(t, reports)
			of(1)
			time.Sleep(10 * time.Minute)
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
			time.Sleep(2 * time.Second)
			for range 3 {
				want(t, "page", of(9), "1 00:00:00")
				synctest.Wait()
			}
			testkit.Equal(t, "readings", reports.began.Load(), 2)
		})
	})
	t.Run("of many accounts are read two at a time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			reports := &slowReports{takes: time.Second}
			top := clickreport.NewRankings(reports, quiet)
			for account := range int64(6) {
				rankingOf(t, top, account, day, 1)
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
			top := clickreport.NewRankings(reports, quiet)
			for account := range int64(1001) {
				rankingOf(t, top, account, day, account+1)
			}
			want(t, "second account", rankingOf(t, top, 1, day, 2), "2 ")
			testkit.Equal(t, "readings", reports.began.Load(), int64(1001))
			reports.takes = time.Second
			want(t, "first account", rankingOf(t, top, 0, day, 1), "unknown")
			time.Sleep(time.Second)
		})
	})
	t.Run("are not read any more after the end, which interrupts readings", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			reports := &slowReports{takes: 5 * time.Second}
			top := clickreport.NewRankings(reports, quiet)
			rankingOf(t, top, 1, day, 1)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			begin := time.Now()
			top.Run(ctx)
			testkit.Equal(t, "time to stop", time.Since(begin), 0)
			testkit.Equal(t, "readings under way", reports.running.Load(), 0)
			want(t, "page", rankingOf(t, top, 2, day, 1), "unknown")
			testkit.Equal(t, "readings", reports.began.Load(), 1)
		})
	})
}
