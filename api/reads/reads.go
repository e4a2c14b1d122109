// Package reads lets accounts take turns at the reads of the stores, so that no account's reads delay another account
// by more than one read. Both stores of a service have turns of their own, in two classes:
//
//   - Short reads take milliseconds: the statistics of a link, the clicks of a page of links, the clicks of an account
//     by day. They have half of the store's readers. An account may use all of them while nobody else waits.
//   - Long reads grow with what the account has: reports, searches, lists by tag or clicks, tags, exports. They have
//     the other half. One account may use a quarter of that, so that others need not wait until its long reads end.
//     Reports of an account that has many waiting yield to other reports in the store, too.
//
// Reads of a few rows by their keys take no turns. The readers of an account's shared reports are a client of their
// own.
//
// Results keeps what long reads have found, and reads it again in the background.
package reads

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema"
	"linkstream/schema/service"
	"linkstream/schema/turns"
)

// Bounds of calls that wait for their turn, of each class.
const (
	maxWaiting     = 1000
	maxWaitingEach = 100 // of one account
)

// shortRead is the largest number of links whose counts, or rows, are a short read.
const shortRead = 100

// store is a store whose reads take turns by account.
type store struct {
	short, long *turns.Turns

	full, late, slow *metrics.Counter
}

const refusedMetric = "linkstream_api_reads_refused_total"

func newStore(name string, readers int, set *metrics.Set) *store {
	service.Describe(set, refusedMetric, "Reads refused because of what their account asks for, by store and reason.")
	refused := func(reason string) *metrics.Counter {
		return set.NewCounter(fmt.Sprintf(refusedMetric+`{store=%q,reason=%q}`, name, reason))
	}
	long := max(1, readers/2)
	limits := turns.Limits{Places: max(1, readers-long), Waiting: maxWaiting, WaitingEach: maxWaitingEach}
	s := &store{short: turns.New(limits), full: refused("full"), late: refused("late"), slow: refused("slow")}
	limits.Places, limits.PlacesEach = long, max(1, long/4)
	s.long = turns.New(limits)
	return s
}

// kind is a kind of reads, with what helps a client whose read is refused.
type kind struct {
	price int    // in turns; 0: 1
	waits string // while other reads of the account are under way
	slow  string // if a long read does not end in time
}

var (
	reportReads = kind{
		waits: "Other reports of your account are still under way: wait for their answers, ask for shorter ranges, or try " +
			"again later.",
		slow: "This report takes too long: ask for a shorter range, or for the links of a tag.",
	}
	listReads = kind{
		waits: "Other searches, lists or exports of your account are still under way: wait for their answers, or try again " +
			"later.",
		slow: "Your account has too many links to read them in time: narrow the list, or try again later.",
	}
	countReads = kind{
		waits: "Other calls of your account are still under way: wait for their answers, or try again later.",
	}
)

func busy(message string) error { return &schema.Error{Code: schema.CodeBusy, Message: message} }

type clientKey struct{}

// As returns a context for reads that take a client's turns instead of the turns of the account that is read.
func As(ctx context.Context, c turns.Client) context.Context {
	return context.WithValue(ctx, clientKey{}, c)
}

// clientOf returns the client whose turns a read of an account takes.
func clientOf(ctx context.Context, account int64) turns.Client {
	if client, other := ctx.Value(clientKey{}).(turns.Client); other {
		return client
	}
	return turns.Account(account)
}

// read calls f when it is the account's turn. CodeBusy if too many calls of the account wait, or if ctx ends after a
// wait that took most of the time, or during a long read.
func read[T any](
	ctx context.Context, s *store, class *turns.Turns, k kind, account int64, f func() (T, error),
) (result T, err error) {
	client := clientOf(ctx, account)
	began := time.Now()
	err = class.Take(ctx, client, max(1, k.price))
	waited := time.Since(began)
	if err == nil {
		defer class.Leave(client)
		if err = ctx.Err(); err == nil { // the turn may have come too late
			result, err = f()
		}
	}
	ended := errors.Is(ctx.Err(), context.DeadlineExceeded)
	switch {
	case errors.Is(err, turns.ErrFull):
		s.full.Inc()
		return result, busy(k.waits)
	case err != nil && ended && waited > time.Since(began)/2: // the wait took most of the time
		s.late.Inc()
		return result, busy(k.waits)
	case err != nil && ended && class == s.long:
		s.slow.Inc()
		return result, busy(k.slow)
	}
	return result, err
}
