package main

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"linkstream/bench/load"
	"linkstream/bench/report"
)

// runShorten measures the making of links, beside a loop that inserts the same rows.
func runShorten(ctx context.Context, b *bench) error {
	service, err := b.open(ctx, newLinkSet(b.cfg.Links))
	if err != nil {
		return err
	}
	before, err := service.api.links(ctx, 1)
	if err != nil {
		return err
	}
	var created atomic.Int64
	whole := b.apiSubject(service, func(int) load.Source {
		return &shortening{api: service.api, created: &created}
	})
	subjects := []*subject{whole}
	if b.cfg.Start {
		bare, err := service.engines.bareInserts(ctx)
		if err != nil {
			return err
		}
		subjects = []*subject{bare, whole}
	}
	if err := b.rounds(ctx, "link", subjects); err != nil {
		return err
	}
	if err := b.openLoop(ctx, "link", []*subject{whole}); err != nil {
		return err
	}
	after, err := service.api.links(ctx, 1)
	b.report.Checks = append(b.report.Checks, report.Check{Name: "new links in the list", Want: created.Load(),
		Got: int64(after.Meta.Total - before.Meta.Total)})
	return err
}

// shortening makes requests for new links, each of another URL.
type shortening struct {
	api     *api
	created *atomic.Int64
	body    []byte
}

// Append implements load.Source.
func (s *shortening) Append(dst []byte) []byte {
	s.body = fmt.Appendf(s.body[:0], `{"long_url": %q}`, fmt.Sprintf("%s%d%s", urlStart, time.Now().UnixNano(), urlEnd))
	return s.api.appendCall(dst, http.MethodPost, "/api/v1/shorten", s.body)
}

// Check implements load.Source.
func (s *shortening) Check(a load.Answer) error {
	if a.Status != http.StatusCreated {
		return statusError(a)
	}
	s.created.Add(1)
	return nil
}
