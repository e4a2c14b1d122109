package scenario

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"linkstream/bench/contender"
	"linkstream/bench/load"
	"linkstream/bench/system"
	"linkstream/bench/workload"
	"linkstream/schema"
)

const (
	// calls at the same time: an account has one writer at a time, and more calls would only wait, for 503 on a busy
	// machine
	bulkConns    = 2
	bulkRequests = schema.MaxLinkBatch / 100 // of the rate limit, per call
)

// runCreate measures the creation of links through the API, one per call, compared with a loop that inserts the same
// rows, and many per call. Rates and CPU time are per link.
func runCreate(ctx context.Context, r *run) error {
	service, err := r.open(ctx, workload.NewLinks(r.cfg.Links), nil)
	if err != nil {
		return err
	}
	before, err := service.API.Links(ctx, 1)
	if err != nil {
		return err
	}
	created := new(atomic.Int64)
	single := []*contender.Contender{r.called(service.Name, service, func(int) load.Source {
		return &shortenRequest{api: service.API, created: created}
	})}
	l := r.load(false)
	l.Conns = min(l.Conns, bulkConns)
	bulk := []*contender.Contender{contender.PerLink(contender.Called(service.Name, service, l, bulkRequests,
		func(int) load.Source { return &bulkRequest{api: service.API, created: created} }), schema.MaxLinkBatch)}
	if r.cfg.System.Start {
		insert, err := service.Engines.BareLinkInsert(ctx)
		if err != nil {
			return err
		}
		single = append([]*contender.Contender{contender.LinkCalls(insert)}, single...)
	}
	if err := r.closedLoop(ctx, "link", single); err != nil {
		return err
	}
	if err := r.openLoop(ctx, "link", single[len(single)-1:]); err != nil {
		return err
	}
	if err := r.closedLoop(ctx, "bulk link", bulk); err != nil {
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
	s.api.Made(a.Body)
	return nil
}

// bulkRequest requests a thousand new links, each with a different URL.
type bulkRequest struct {
	api     *system.API
	created *atomic.Int64
	body    []byte // scratch
}

// Append implements load.Source.
func (s *bulkRequest) Append(dst []byte) []byte {
	s.body = append(s.body[:0], `{"links":[`...)
	now := time.Now().UnixNano()
	for i := range int64(schema.MaxLinkBatch) {
		if i > 0 {
			s.body = append(s.body, ',')
		}
		s.body = fmt.Appendf(s.body, `{"long_url":%q}`, workload.UniqueURL(now+i))
	}
	return s.api.AppendCounted(dst, bulkRequests, http.MethodPost, "/api/v1/links/bulk", append(s.body, "]}"...))
}

// Check implements load.Source.
func (s *bulkRequest) Check(a load.Answer) error {
	switch {
	case a.Status != http.StatusOK:
		return system.StatusError(a)
	case !bytes.HasPrefix(a.Body, fmt.Appendf(nil, `{"success":true,"created":%d,"failed":0,`, schema.MaxLinkBatch)):
		return fmt.Errorf("links are missing: %.200s", a.Body)
	}
	s.created.Add(schema.MaxLinkBatch)
	s.api.Made(a.Body)
	return nil
}
