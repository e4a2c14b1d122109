package reads_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/api/reads"
	"linkstream/schema"
	"linkstream/schema/testkit"
	"linkstream/schema/turns"
)

const (
	abuser, other = int64(1), int64(2)

	readers   = 4
	longRead  = 4 * time.Second
	shortRead = time.Millisecond
)

// slowStore is both stores. Its reads take a while.
type slowStore struct {
	schema.Database
	reads.Store
	fails  error
	yields func(account int64) // called for reports that yield
}

func (slowStore) Readers() int { return readers }

func (s slowStore) take(ctx context.Context, duration time.Duration) error {
	select {
	case <-time.After(duration):
		return s.fails
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s slowStore) Report(ctx context.Context, q schema.ReportQuery) (schema.Report, error) {
	if q.NoNames {
		return schema.Report{}, s.take(ctx, shortRead)
	}
	if q.Yields {
		s.yields(q.AccountID)
	}
	return schema.Report{}, s.take(ctx, longRead)
}

func (s slowStore) ClickTotals(ctx context.Context, _, _ []int64) (map[int64]schema.Period, map[int64]schema.Period,
	error) {
	return nil, nil, s.take(ctx, longRead)
}

func (s slowStore) LinkStats(ctx context.Context, _ int64) (schema.Stats, error) {
	return schema.Stats{}, s.take(ctx, shortRead)
}

func (s slowStore) ClickCounts(ctx context.Context, _ int64, ids []int64) (map[int64]int64, error) {
	if len(ids) > 100 {
		return nil, s.take(ctx, longRead)
	}
	return nil, s.take(ctx, shortRead)
}

func (s slowStore) Links(
	ctx context.Context, _ int64, filter schema.LinkFilter, _ int64,
) ([]schema.Link, int64, error) {
	if filter.IsZero() {
		return nil, 0, nil
	}
	return []schema.Link{{ID: 7}}, 1, s.take(ctx, longRead)
}

func (s slowStore) LinkIDs(ctx context.Context, _ int64, _ schema.LinkFilter, _ int) ([]int64, error) {
	return nil, s.take(ctx, longRead)
}

func (s slowStore) LinksAfter(
	ctx context.Context, _ int64, _ schema.LinkFilter, _ schema.LinkPosition, _ int,
) ([]schema.Link, error) {
	return nil, s.take(ctx, longRead)
}

func (s slowStore) NumberChanges(ctx context.Context, _ int64, _ int) (int64, error) {
	return 0, s.take(ctx, longRead)
}

func (s slowStore) ChangedLinks(
	ctx context.Context, _ int64, _ schema.LinkFilter, next schema.LinkChangePosition, _ int,
) ([]schema.Link, schema.LinkChangePosition, error) {
	return nil, next, s.take(ctx, longRead)
}

func (s slowStore) LinksByID(ctx context.Context, _ int64, ids []int64) ([]schema.Link, error) {
	if len(ids) > 100 {
		return nil, s.take(ctx, longRead)
	}
	return nil, nil
}

func (s slowStore) TagCounts(ctx context.Context, _ int64, _ string, _ int) ([]schema.TagCount, error) {
	return nil, s.take(ctx, longRead)
}

func (s slowStore) TaggedLinks(ctx context.Context, _, _ int64, _ int) ([]schema.TaggedLink, error) {
	return nil, s.take(ctx, longRead)
}

func (s slowStore) RenameTag(ctx context.Context, _ int64, _, _ string, _ time.Time) (int64, error) {
	return 0, s.take(ctx, longRead)
}

// service is the stores of a service whose reads take reads.
type service struct {
	links  schema.Database
	clicks *reads.Clicks
	set    *metrics.Set
}

func newService(fails error) service {
	return serviceOf(slowStore{fails: fails, yields: func(int64) {}})
}

func serviceOf(store slowStore) service {
	set := metrics.NewSet()
	return service{reads.Links(store, set), reads.NewClicks(store, set), set}
}

// call is a read of an account.
type call func(ctx context.Context, s service, account int64) error

var (
	shortReads = map[string]call{
		"LinkStats": func(ctx context.Context, s service, account int64) error {
			_, err := s.clicks.Of(account).LinkStats(ctx, 1)
			return err
		},
		"ClickCounts of a page": func(ctx context.Context, s service, account int64) error {
			_, err := s.clicks.Of(account).ClickCounts(ctx, make([]int64, schema.PageSize))
			return err
		},
		"Report of days": func(ctx context.Context, s service, account int64) error {
			_, err := s.clicks.Report(ctx, schema.ReportQuery{AccountID: account, NoNames: true, Bounds: []time.Time{{}}})
			return err
		},
		"Links": func(ctx context.Context, s service, account int64) error {
			_, _, err := s.links.Links(ctx, account, schema.LinkFilter{}, 1)
			return err
		},
		"LinksByID of a page": func(ctx context.Context, s service, account int64) error {
			_, err := s.links.LinksByID(ctx, account, make([]int64, schema.PageSize))
			return err
		},
	}
	longReads = map[string]call{
		"Report": report,
		"ClickCounts of many": func(ctx context.Context, s service, account int64) error {
			_, err := s.clicks.Of(account).ClickCounts(ctx, make([]int64, 5000))
			return err
		},
		"ClickTotals": func(ctx context.Context, s service, account int64) error {
			_, err := s.clicks.Of(account).ClickTotals(ctx, []int64{1})
			return err
		},
		"Links with a filter": func(ctx context.Context, s service, account int64) error {
			found, total, err := s.links.Links(ctx, account, schema.LinkFilter{Tag: "a"}, 1)
			if err == nil && (len(found) != 1 || total != 1) {
				err = fmt.Errorf("%v of %d", found, total)
			}
			return err
		},
		"LinkIDs": func(ctx context.Context, s service, account int64) error {
			_, err := s.links.LinkIDs(ctx, account, schema.LinkFilter{}, 10)
			return err
		},
		"LinksAfter": func(ctx context.Context, s service, account int64) error {
			_, err := s.links.LinksAfter(ctx, account, schema.LinkFilter{}, schema.LinkPosition{}, 10)
			return err
		},
		"NumberChanges": func(ctx context.Context, s service, account int64) error {
			_, err := s.links.NumberChanges(ctx, account, 10)
			return err
		},
		"ChangedLinks": func(ctx context.Context, s service, account int64) error {
			_, _, err := s.links.ChangedLinks(ctx, account, schema.LinkFilter{}, schema.LinkChangePosition{}, 10)
			return err
		},
		"LinksByID of many": func(ctx context.Context, s service, account int64) error {
			_, err := s.links.LinksByID(ctx, account, make([]int64, 1000))
			return err
		},
		"TagCounts": func(ctx context.Context, s service, account int64) error {
			_, err := s.links.TagCounts(ctx, account, "", 10)
			return err
		},
		"TaggedLinks": func(ctx context.Context, s service, account int64) error {
			_, err := s.links.TaggedLinks(ctx, account, 0, 10)
			return err
		},
		"RenameTag": func(ctx context.Context, s service, account int64) error {
			_, err := s.links.RenameTag(ctx, account, "a", "b", time.Time{})
			return err
		},
	}
)

func report(ctx context.Context, s service, account int64) error {
	_, err := s.clicks.Report(ctx, schema.ReportQuery{AccountID: account})
	return err
}

// took returns the time of a call that succeeds.
func took(t *testing.T, s service, account int64, c call) time.Duration {
	t.Helper()
	began := time.Now()
	testkit.Must(t, c(t.Context(), s, account))
	return time.Since(began)
}

// begin begins calls of the abuser. They end with the test.
func begin(t *testing.T, s service, n int, c call) {
	ctx, cancel := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	for range n {
		calls.Go(func() { _ = c(ctx, s, abuser) })
	}
	synctest.Wait()
	t.Cleanup(func() { cancel(); calls.Wait() })
}

func inBubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// TestSearchesOfManyWords lets an account search while others use all places for long reads.
func TestSearchesOfManyWords(t *testing.T) {
	inBubble(t, "take turns by their words", func(t *testing.T) {
		s := newService(nil)
		of := func(words int, account int64) call {
			return func(ctx context.Context, s service, _ int64) error {
				_, err := s.links.LinkIDs(ctx, account, schema.LinkFilter{Words: make([]schema.LinkWord, words)}, 1)
				return err
			}
		}
		for n := range int64(4) { // as many as there are places
			begin(t, s, 50, of(1, abuser+10*n))
		}
		few, many := took(t, s, other, of(8, other)), took(t, s, other, of(24, other))
		if many < few+longRead {
			t.Errorf("a search of 24 words takes %v, of 8 words %v", many, few)
		}
	})
}

func TestLongReadsOfAnAccount(t *testing.T) {
	for name, long := range longReads {
		inBubble(t, name+" does not delay reads of others", func(t *testing.T) {
			s := newService(nil)
			begin(t, s, 50, long)
			testkit.Equal(t, "the same of another account", took(t, s, other, long), longRead)
			for name, short := range shortReads {
				if duration := took(t, s, other, short); duration > shortRead {
					t.Errorf("%s of another account takes %v", name, duration)
				}
				if duration := took(t, s, abuser, short); duration > shortRead {
					t.Errorf("%s of the account takes %v", name, duration)
				}
			}
		})
		inBubble(t, name+" is refused with advice if its turn does not come", func(t *testing.T) {
			s := newService(nil)
			begin(t, s, 50, long)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			wantBusy(t, long(ctx, s, abuser), "wait for their answers")
			wantRefused(t, s, "late")
		})
		inBubble(t, name+" is refused with advice if it takes too long", func(t *testing.T) {
			s := newService(nil)
			ctx, cancel := context.WithTimeout(t.Context(), longRead/2)
			defer cancel()
			wantBusy(t, long(ctx, s, abuser), "too ")
			wantRefused(t, s, "slow")
		})
		inBubble(t, name+" is refused at once if too many wait", func(t *testing.T) {
			s := newService(nil)
			begin(t, s, 101, long)
			began := time.Now()
			wantBusy(t, long(t.Context(), s, abuser), "wait for their answers")
			testkit.Equal(t, "time", time.Since(began), 0)
			wantRefused(t, s, "full")
		})
		t.Run(name+" returns the error of the store", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fails := errors.New("the store fails")
				if err := long(t.Context(), newService(fails), abuser); !errors.Is(err, fails) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

func TestReportsYield(t *testing.T) {
	inBubble(t, "if more than four of their account wait", func(t *testing.T) {
		yielded := make(chan int64, 100)
		s := serviceOf(slowStore{yields: func(account int64) { yielded <- account }})
		var calls sync.WaitGroup
		for range 7 {
			calls.Go(func() { testkit.Must(t, report(t.Context(), s, abuser)) })
		}
		for range 5 {
			calls.Go(func() { testkit.Must(t, report(t.Context(), s, other)) })
		}
		calls.Wait()
		// The first report of each begins while none waits. Five of the abuser's wait when its second one begins.
		testkit.Equal(t, "reports that yield", len(yielded), 1)
		testkit.Equal(t, "their account", <-yielded, abuser)
	})
}

func TestShortReadsOfAnAccount(t *testing.T) {
	inBubble(t, "delay another account by one of them", func(t *testing.T) {
		s, stats := newService(nil), shortReads["LinkStats"]
		begin(t, s, 90, stats)
		if duration := took(t, s, other, stats); duration > 2*shortRead {
			t.Errorf("%v", duration)
		}
	})
	inBubble(t, "use all places that nobody else needs", func(t *testing.T) {
		s, stats := newService(nil), shortReads["LinkStats"]
		var calls sync.WaitGroup
		began := time.Now()
		for range 10 {
			calls.Go(func() { testkit.Must(t, stats(t.Context(), s, abuser)) })
		}
		calls.Wait()
		testkit.Equal(t, "time", time.Since(began), 10*shortRead/(readers/2))
	})
}

func wantBusy(t *testing.T, err error, advice string) {
	t.Helper()
	var busy *schema.Error
	if !errors.As(err, &busy) || busy.Code != schema.CodeBusy || !strings.Contains(busy.Message, advice) {
		t.Errorf("got %v, want advice %q", err, advice)
	}
}

func wantRefused(t *testing.T, s service, reason string) {
	t.Helper()
	var page strings.Builder
	s.set.WritePrometheus(&page)
	if !strings.Contains(page.String(), fmt.Sprintf("reason=%q} 1\n", reason)) {
		t.Errorf("no read refused for %q in\n%s", reason, page.String())
	}
}

func TestReadersOfSharedReports(t *testing.T) {
	readers := func(ctx context.Context, s service, account int64) error {
		return report(reads.As(ctx, turns.Readers(account)), s, account)
	}
	inBubble(t, "do not delay the reports of their account", func(t *testing.T) {
		s := newService(nil)
		begin(t, s, 50, readers)
		testkit.Equal(t, "a report of the account", took(t, s, abuser, report), longRead)
	})
	inBubble(t, "do not delay the readers of another account", func(t *testing.T) {
		s := newService(nil)
		begin(t, s, 50, readers)
		testkit.Equal(t, "a report of another account", took(t, s, other, readers), longRead)
	})
}
