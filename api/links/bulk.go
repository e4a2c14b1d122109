package links

import (
	"context"
	"time"

	"linkstream/schema"
)

// Result is the outcome of one of many requests: a link, or the error of Create.
type Result struct {
	Link   schema.Link
	Reused bool // the link was there, see Request.Reuse
	Err    error
}

// CreateAll creates the links of up to schema.MaxLinkBatch requests of one account in one transaction, in the order of
// the requests, and returns the outcome of each. The first valid one of the requests for the same alias gets it. After
// an error no link has been created, unless it is CodeUnavailable: then all or none have.
func (s *Shortener) CreateAll(ctx context.Context, reqs []Request) ([]Result, error) {
	return s.createAll(ctx, reqs, nil, false)
}

// CreateUnused is CreateAll for aliases that the caller has just found to be of no link, which is cheaper.
func (s *Shortener) CreateUnused(ctx context.Context, reqs []Request) ([]Result, error) {
	return s.createAll(ctx, reqs, nil, true)
}

// Record says how a call is recorded, so that it creates links once.
type Record struct {
	Call schema.IdempotentCall
	// Answer returns the record of the results. If it is nil, the call is not recorded. Answer may be called several
	// times.
	Answer func([]Result) ([]byte, error)
}

// CreateOnce is CreateAll, and lets links stand for new ones if requests say Reuse: of concurrent calls that would
// reuse each other's links one creates a link. The call is recorded with its links, unless record is nil. CreateOnce
// creates nothing and returns schema.ErrCallRepeated, ErrCallUnderWay or ErrTooManyKeys, in a chain, for a call that
// must not be made.
func (s *Shortener) CreateOnce(ctx context.Context, reqs []Request, record *Record) ([]Result, error) {
	return s.createAll(ctx, reqs, record, false)
}

func (s *Shortener) createAll(ctx context.Context, reqs []Request, record *Record, unused bool) ([]Result, error) {
	if len(reqs) == 0 {
		return nil, nil
	}
	drafts, errs, err := s.validateAll(ctx, reqs)
	if err != nil {
		return nil, err
	}
	results := make([]Result, len(reqs))
	if err := s.hashPasswords(ctx, valid(drafts, errs)); err != nil {
		return nil, err
	}
	batch := &schema.LinkBatch{AccountID: reqs[0].AccountID, Unused: unused, NewHash: schema.NewHash,
		Links: make([]schema.Link, 0, len(reqs))}
	places := make([]int, 0, len(reqs)) // of the links in results
	for i := range drafts {
		d := &drafts[i]
		if results[i].Err = errs[i]; errs[i] != nil {
			continue
		}
		places = append(places, i)
		batch.Links = append(batch.Links, d.link)
	}
	if batch.Reuse = reuses(drafts, places); batch.Reuse != nil {
		if err := s.noteTargets(ctx, batch.AccountID); err != nil {
			return nil, err
		}
		if len(reqs) == 1 && record == nil {
			link, err := s.links.ReusableLink(ctx, batch.AccountID, batch.Links[0].ReuseKey(), time.Now(), batch.Reuse[0])
			if schema.ErrorCode(err) != schema.CodeNotFound {
				return []Result{{Link: link, Reused: true}}, err
			}
		}
	}
	if record != nil {
		batch.Call = &record.Call
		batch.Answer = func(links []schema.Link, errs []error) ([]byte, error) {
			collect(results, drafts, places, links, batch.Reused, errs)
			return record.Answer(results)
		}
	}
	if len(places) == 0 {
		if record == nil {
			return results, nil
		}
		if answer, err := record.Answer(results); answer == nil || err != nil {
			return results, err
		}
	}
	if err := s.links.CreateLinks(ctx, batch); err != nil {
		return nil, err
	}
	collect(results, drafts, places, batch.Links, batch.Reused, batch.Errs)
	return results, nil
}

// valid returns the drafts without an error.
func valid(drafts []draft, errs []error) (valid []*draft) {
	for i := range drafts {
		if errs[i] == nil {
			valid = append(valid, &drafts[i])
		}
	}
	return valid
}

// collect puts what became of the links of drafts at places into results.
func collect(
	results []Result, drafts []draft, places []int, links []schema.Link, reused []bool, errs []error,
) {
	for n, i := range places {
		results[i] = Result{Link: links[n], Reused: reused != nil && reused[n], Err: drafts[i].rejection(errs[n])}
	}
}

// CheckAll returns the error or nil that CreateAll would return for each request, and creates nothing. It does not find
// out whether an alias is in use. An error of a store ends the call.
func (s *Shortener) CheckAll(ctx context.Context, reqs []Request) ([]error, error) {
	_, errs, err := s.validateAll(ctx, reqs)
	return errs, err
}

// validateAll validates an account's requests. A request without an error has a link that is ready.
func (s *Shortener) validateAll(ctx context.Context, reqs []Request) ([]draft, []error, error) {
	drafts, errs := make([]draft, len(reqs)), make([]error, len(reqs))
	if len(reqs) == 0 {
		return drafts, errs, nil
	}
	now := time.Now()
	for i := range reqs {
		drafts[i].begin(&reqs[i], now)
	}
	k, err := s.lookUpAll(ctx, reqs[0].AccountID, drafts)
	if err != nil {
		return nil, nil, err
	}
	for i := range drafts {
		errs[i] = s.finish(&drafts[i], k)
	}
	return drafts, errs, nil
}
