package shorten

import (
	"context"

	"golang.org/x/sync/errgroup"

	"linkstream/schema"
)

// bulkParallel bounds the links of one call that are created at the same time. Stores insert those together, by one statement
// or in one transaction.
const bulkParallel = 256

// Result is what became of one of many requests: a link, or the error of Create.
type Result struct {
	Link schema.Link
	Err  error
}

// CreateAll creates many links and returns what became of each request, in their order. Of requests for the same alias the
// first valid one gets it. An error of a store ends the call: it is returned, and some links may have been created.
func (s *Shortener) CreateAll(ctx context.Context, reqs []Request) ([]Result, error) {
	results := make([]Result, len(reqs))
	create := func(ctx context.Context, i int) error {
		link, err := s.Create(ctx, reqs[i])
		results[i] = Result{link, err}
		if err != nil && !ofRequest(err) {
			return err
		}
		return nil
	}
	type alias struct {
		domain int64
		hash   string
	}
	group, groupContext := errgroup.WithContext(ctx)
	group.SetLimit(bulkParallel)
	seen := map[alias]bool{}
	var again []int // requests for an alias that an earlier one asks for, too
	for i, req := range reqs {
		if req.CustomAlias != nil {
			key := alias{hash: *req.CustomAlias}
			if req.DomainID != nil {
				key.domain = *req.DomainID
			}
			if seen[key] {
				again = append(again, i)
				continue
			}
			seen[key] = true
		}
		group.Go(func() error { return create(groupContext, i) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, i := range again {
		if err := create(ctx, i); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// CheckAll returns the error that CreateAll would give for each request, nil if there is none, and creates nothing. It does not
// find out whether an alias is in use. An error of a store ends the call.
func (s *Shortener) CheckAll(ctx context.Context, reqs []Request) ([]error, error) {
	errs := make([]error, len(reqs))
	for i, req := range reqs {
		_, errs[i] = s.validate(ctx, req)
		if errs[i] != nil && !ofRequest(errs[i]) {
			return nil, errs[i]
		}
	}
	return errs, nil
}

// ofRequest reports whether an error of Create says what is wrong with the request.
func ofRequest(err error) bool {
	code := schema.ErrorCode(err)
	return code == schema.CodeInvalid || code == schema.CodeUnsafeURL
}
