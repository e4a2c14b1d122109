package scenario

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"linkstream/bench/contender"
	"linkstream/bench/load"
	"linkstream/bench/system"
	"linkstream/bench/workload"
)

// runShorten measures the creation of links, beside a loop that inserts the same rows.
func runShorten(ctx context.Context, r *run) error {
	service, err := r.open(ctx, workload.NewLinks(r.cfg.Links))
	if err != nil {
		return err
	}
	return r.creating(ctx, service, func(created *atomic.Int64) error {
		whole := r.called(service.Name, service, func(int) load.Source {
			return &shortenRequest{api: service.API, created: created}
		})
		contenders := []*contender.Contender{whole}
		if r.cfg.System.Start {
			insert, err := service.Engines.BareLinkInsert(ctx)
			if err != nil {
				return err
			}
			contenders = []*contender.Contender{contender.LinkCalls(insert), whole}
		}
		if err := r.closedLoop(ctx, "link", contenders); err != nil {
			return err
		}
		return r.openLoop(ctx, "link", []*contender.Contender{whole})
	})
}

// creating calls run, which counts the links that it creates, and checks that the account has as many more afterwards.
func (r *run) creating(ctx context.Context, service *system.Service, run func(created *atomic.Int64) error) error {
	before, err := service.API.Links(ctx, 1)
	if err != nil {
		return err
	}
	var created atomic.Int64
	if err := run(&created); err != nil {
		return err
	}
	after, err := service.API.Links(ctx, 1)
	r.check("new links in the list", created.Load(), int64(after.Meta.Total-before.Meta.Total))
	return err
}

// shortenRequest requests new links, each with a different URL.
type shortenRequest struct {
	api     *system.API
	created *atomic.Int64
	body    []byte // scratch
}

// Append implements load.Source.
func (s *shortenRequest) Append(dst []byte) []byte {
	s.body = fmt.Appendf(s.body[:0], `{"long_url": %q}`, workload.UniqueURL(time.Now().UnixNano()))
	return s.api.AppendRequest(dst, http.MethodPost, "/api/v1/shorten", s.body)
}

// Check implements load.Source.
func (s *shortenRequest) Check(a load.Answer) error {
	if a.Status != http.StatusCreated {
		return system.StatusError(a)
	}
	s.created.Add(1)
	return nil
}
