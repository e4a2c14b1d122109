package clickreport

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"linkstream/api/reads"
	"linkstream/schema"
	"linkstream/schema/turns"
)

// RankedAtOnce is how many links an account may have so that its ranking is part of each report of it.
const RankedAtOnce = 1000

// TopLinks is how many links Top finds, and TopDays is the number of days whose clicks decide.
const (
	TopLinks = 1000
	TopDays  = 30
)

// topAge is how old the links of Top may be without being found again.
const topAge = time.Minute

// rankWait is how long a page waits for the first ranking.
const rankWait = 50 * time.Millisecond

var rankLimits = reads.Limits{
	Timeout: 10 * time.Second, Pause: 2 * time.Second, Share: 20, Age: 10 * time.Minute, Keys: 1000, AtOnce: 2,
}

// Ranking has the links of an account with the most clicks of some days.
type Ranking struct {
	Links []schema.LinkCount
	At    time.Time // counts are of this moment or a later one
	Exact bool      // no clicks were counted since
}

// Rankings finds the links with the most clicks where finding them takes long: all links that have clicks are read for
// it. Pages get the last ranking, while a new one is read in the background. Clicks are only ever added, so a ranking
// is still true as long as the account has as many clicks as at its time.
type Rankings struct {
	reports schema.ReportStore
	read    *reads.Results[int64, ranked]  // by account
	top     *reads.Results[int64, []int64] // by account
	log     *slog.Logger
}

// ranked is a ranking as it was read.
type ranked struct {
	links []schema.LinkCount
	since time.Time // the first day
	total int64     // clicks on all links
}

// NewRankings returns rankings, which somebody has to Run.
func NewRankings(reports schema.ReportStore, log *slog.Logger) *Rankings {
	return &Rankings{reports, reads.NewResults[int64, ranked](rankLimits), reads.NewResults[int64, []int64](rankLimits),
		log}
}

// Run returns when ctx is done and no reading is under way any more. Later pages get what is known.
func (r *Rankings) Run(ctx context.Context) {
	r.read.Run(ctx)
	r.top.Run(ctx)
}

// Top returns the IDs of the TopLinks links of an account with the most clicks in the last TopDays days, most first.
// While they are found again, it returns the last ones, which are up to rankLimits.Age old. CodeUnavailable if none are
// known in time.
func (r *Rankings) Top(ctx context.Context, accountID int64, now time.Time) ([]int64, error) {
	judge := func(found reads.Result[[]int64]) reads.Use {
		if now.Sub(found.At) < topAge {
			return reads.Fresh
		}
		return reads.Old
	}
	found, err := r.top.Of(ctx, turns.Account(accountID), accountID, judge, func(ctx context.Context) ([]int64, error) {
		q := rankingQuery(accountID, AddDays(now.UTC(), 1-TopDays), now)
		q.Limit = TopLinks
		report, err := r.reports.Report(ctx, q)
		ids := make([]int64, len(report.Links))
		for i, link := range report.Links {
			ids[i] = link.LinkID
		}
		return ids, err
	})
	switch {
	case found != nil:
		return found.Value, nil
	case err == nil:
		err = schema.Errorf(schema.CodeUnavailable, "the links of account %d are still ranked", accountID)
	}
	return nil, err
}

// Of returns the ranking of an account that has total clicks since a day; nil if none is known yet. It takes at most
// rankWait.
func (r *Rankings) Of(ctx context.Context, accountID int64, since time.Time, total int64) *Ranking {
	if total == 0 {
		return &Ranking{Exact: true}
	}
	ctx, cancel := context.WithTimeout(ctx, rankWait)
	defer cancel()
	judge := func(found reads.Result[ranked]) reads.Use {
		if found.Value.since.Equal(since) && found.Value.total == total {
			return reads.Fresh
		}
		return reads.Old
	}
	found, _ := r.read.Of(ctx, turns.Account(accountID), accountID, judge, func(ctx context.Context) (ranked, error) {
		report, err := r.reports.Report(ctx, rankingQuery(accountID, since, time.Now()))
		if err != nil {
			if !errors.Is(ctx.Err(), context.Canceled) {
				r.log.Warn("links with the most clicks are unknown", "account", accountID, "error", err)
			}
			return ranked{}, err
		}
		return ranked{report.Links, since, report.Series[0].Total()}, nil
	})
	if found == nil {
		return nil
	}
	return &Ranking{Links: found.Value.links, At: found.At.UTC(), Exact: judge(*found) == reads.Fresh}
}

// rankingQuery asks for the links with the most clicks from a day on. The clocks of edges may be ahead, so tomorrow is
// part of it.
func rankingQuery(accountID int64, since, now time.Time) schema.ReportQuery {
	return schema.ReportQuery{
		AccountID: accountID, Previous: Bound(since).AddDate(0, 0, -1), // nothing is compared
		Bounds: []time.Time{Bound(since), Bound(AddDays(now.In(since.Location()), 2))},
		Limit:  DefaultTop, TopLinks: true, NoNames: true,
	}
}
