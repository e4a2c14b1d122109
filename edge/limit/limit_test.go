package limit_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/edge/limit"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

const link = 7

// store holds the limit of one link. One holder takes leases.
type store struct {
	mu    sync.Mutex
	limit int64
	lease schema.LimitLease // as stated last
	ended bool
	takes int // calls
	away  bool
	hangs bool // TakeLease does not return before its time is over
}

func (s *store) call(work func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return errors.New("away")
	}
	work()
	return nil
}

func (s *store) AddLeaseHolder(context.Context, schema.Incarnation) error { return s.call(func() {}) }

func (s *store) TakeLease(
	ctx context.Context, _ schema.Incarnation, given schema.LimitLease,
) (schema.LimitLease, error) {
	s.mu.Lock()
	hangs := s.hangs
	s.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return given, ctx.Err()
	}
	return given, s.call(func() {
		s.takes++
		if given.Granted < 0 {
			given.Granted, given.Spent = s.lease.Spent, s.lease.Spent
		}
		free := max(0, s.limit-given.Granted)
		given.Granted += min(free, max(1, free/schema.LeaseShare), schema.MaxLease)
		s.lease = given
	})
}

func (s *store) StateLeases(_ context.Context, _ schema.Incarnation, given []schema.LimitLease) error {
	return s.call(func() { s.lease = given[0] })
}

func (s *store) EndLeases(context.Context, schema.Incarnation, map[int64]int64) error {
	return s.call(func() { s.ended = true })
}

func (s *store) LimitUse(context.Context, []int64) (use map[int64]schema.LimitUse, err error) {
	err = s.call(func() { use = map[int64]schema.LimitUse{link: {Granted: s.lease.Granted, Spent: s.lease.Spent}} })
	return use, err
}

// change changes the store, and seen returns its lease and its number of calls.
func (s *store) change(work func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	work()
}

func (s *store) seen() (lease schema.LimitLease, takes int) {
	s.change(func() { lease, takes = s.lease, s.takes })
	return lease, takes
}

// spool remembers nothing of earlier processes.
type spool struct{}

func (spool) Incarnation() schema.Incarnation                    { return schema.Incarnation{1} }
func (spool) NoteLeases() error                                  { return nil }
func (spool) LeftLeases() map[schema.Incarnation]map[int64]int64 { return nil }
func (spool) LeasesEnded(schema.Incarnation) error               { return nil }

// inBubble runs a test with a limit in a bubble of time.
func inBubble(t *testing.T, name string, most int64, test func(t *testing.T, s *store, l *limit.Limits)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &store{limit: most}
			l := limit.New(s, spool{}, slog.New(slog.DiscardHandler))
			ctx, cancel := context.WithCancel(t.Context())
			go l.Run(ctx)
			test(t, s, l)
			s.change(func() { s.away = false })
			cancel()
			synctest.Wait()
			testkit.Must(t, l.Close(t.Context()))
			lease, takes := s.seen()
			testkit.Equal(t, "granted in the end", lease.Granted, lease.Spent)
			testkit.Equal(t, "ended", s.ended, takes > 0)
		})
	})
}

// visit takes a click and records it.
func visit(l *limit.Limits, most int64) limit.Verdict {
	ticket, verdict := l.Await(link, most, true)
	if verdict == limit.Open {
		ticket.Recorded()
	}
	return verdict
}

func TestLimits(t *testing.T) {
	inBubble(t, "visitors at the same time share calls of the store", 64*schema.LeaseShare,
		func(t *testing.T, s *store, l *limit.Limits) {
			var visitors sync.WaitGroup
			for range 100 {
				visitors.Go(func() { testkit.Equal(t, "verdict", visit(l, s.limit), limit.Open) })
			}
			visitors.Wait()
			synctest.Wait()
			_, takes := s.seen()
			testkit.Equal(t, "fewer calls than visitors", takes < 5, true)
		})
	inBubble(t, "a hot link is never asked for by a visitor after the first one", schema.MaxClickLimit,
		func(t *testing.T, s *store, l *limit.Limits) {
			visit(l, s.limit)
			for range 3 * schema.MaxLease {
				ticket, verdict := l.Take(link, s.limit, true)
				if verdict != limit.Open {
					t.Fatalf("verdict %d", verdict)
				}
				ticket.Recorded()
				synctest.Wait() // a click takes no time, so what is fetched ahead needs a chance
			}
		})
	inBubble(t, "nobody waits for the store once the limit is used up", 1, func(t *testing.T, s *store, l *limit.Limits) {
		visit(l, s.limit)
		testkit.Equal(t, "verdict", visit(l, s.limit), limit.UsedUp)
		for range 50 { // seconds, while the store is asked in the background
			_, verdict := l.Take(link, s.limit, true)
			testkit.Equal(t, "verdict", verdict, limit.UsedUp)
			time.Sleep(300 * time.Millisecond)
		}
		_, before := s.seen()
		for range 100 {
			l.Take(link, s.limit, true)
		}
		_, after := s.seen()
		testkit.Equal(t, "calls meanwhile", after-before <= 1, true)
	})
	inBubble(t, "one visitor waits for a store that hangs", 3200, func(t *testing.T, s *store, l *limit.Limits) {
		s.change(func() { s.hangs = true })
		began := time.Now()
		testkit.Equal(t, "verdict", visit(l, s.limit), limit.Unavailable)
		testkit.Equal(t, "waited", time.Since(began), 2*time.Second)
		for range 100 {
			time.Sleep(300 * time.Millisecond)
			began = time.Now()
			testkit.Equal(t, "verdict", visit(l, s.limit), limit.Unavailable)
			testkit.Equal(t, "waited", time.Since(began), 0)
		}
		s.change(func() { s.hangs = false })
		time.Sleep(3 * time.Second) // the call that hangs ends
		visit(l, s.limit)
		synctest.Wait()
		testkit.Equal(t, "verdict afterwards", visit(l, s.limit), limit.Open)
		time.Sleep(time.Minute)
		s.change(func() { s.away = true })
		testkit.Equal(t, "verdict", visit(l, s.limit), limit.Unavailable)
		s.change(func() { s.away = false })
		time.Sleep(time.Minute)
		testkit.Equal(t, "verdict after a minute without visitors", visit(l, s.limit), limit.Open)
	})
	inBubble(t, "a limit that is changed is asked for at once", 1, func(t *testing.T, s *store, l *limit.Limits) {
		visit(l, 1)
		testkit.Equal(t, "verdict", visit(l, 1), limit.UsedUp)
		s.change(func() { s.limit = 3200 })
		testkit.Equal(t, "verdict after a rise", visit(l, 3200), limit.Open)
		s.change(func() { s.limit = 2 })
		testkit.Equal(t, "verdict after a fall", visit(l, 2), limit.UsedUp)
		lease, _ := s.seen()
		testkit.Equal(t, "granted", lease.Granted, int64(2))
	})
}
