package shorten

import (
	"context"

	"linkstream/schema"
)

// Result is what became of one of many requests: a link, or the error of Create.
type Result struct {
	Link schema.Link
	Err  error
}

// CreateAll creates the links of up to schema.MaxLinkBatch requests of one account in one transaction, in the order of the
// requests, and returns what became of each. Of requests for the same alias the first valid one gets it. After an error no link
// has been created, unless it is CodeUnavailable: then all or none have.
func (s *Shortener) CreateAll(ctx context.Context, reqs []Request) ([]Result, error) {
	if len(reqs) == 0 {
		return nil, nil
	}
	drafts, errs, err := s.validateAll(ctx, reqs)
	if err != nil {
		return nil, err
	}
	results := make([]Result, len(reqs))
	batch := &schema.LinkBatch{AccountID: reqs[0].AccountID, NewHash: schema.NewHash}
	var places []int // of the links in results
	for i, d := range drafts {
		if results[i].Err = errs[i]; errs[i] != nil {
			continue
		}
		if d.req.CustomAlias != nil {
			d.link.Hash = *d.req.CustomAlias
		}
		places = append(places, i)
		batch.Links = append(batch.Links, d.link)
	}
	if len(places) == 0 {
		return results, nil
	}
	if err := s.links.CreateLinks(ctx, batch); err != nil {
		return nil, err
	}
	for n, i := range places {
		results[i] = Result{batch.Links[n], rejection(batch.Errs[n])}
	}
	return results, nil
}

// CheckAll returns the error that CreateAll would give for each request, nil if there is none, and creates nothing. It does not
// find out whether an alias is in use. An error of a store ends the call.
func (s *Shortener) CheckAll(ctx context.Context, reqs []Request) ([]error, error) {
	_, errs, err := s.validateAll(ctx, reqs)
	return errs, err
}

// validateAll validates an account's requests. A request without an error has a link that is ready.
func (s *Shortener) validateAll(ctx context.Context, reqs []Request) ([]*draft, []error, error) {
	drafts, errs := make([]*draft, len(reqs)), make([]error, len(reqs))
	if len(reqs) == 0 {
		return drafts, errs, nil
	}
	for i, req := range reqs {
		drafts[i] = newDraft(req)
	}
	k, err := s.lookUpAll(ctx, reqs[0].AccountID, drafts)
	if err != nil {
		return nil, nil, err
	}
	for i, d := range drafts {
		errs[i] = s.finish(d, k)
	}
	return drafts, errs, nil
}
