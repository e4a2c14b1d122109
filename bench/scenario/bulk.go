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
	bulkConns    = 8                         // calls at the same time; all are of one account, whose links follow each other
	bulkRequests = schema.MaxLinkBatch / 100 // of the rate limit
)

// runBulk measures the creation of links by calls of a thousand, beside a loop that inserts as many rows at a time. Rates and CPU
// time are per link.
func runBulk(ctx context.Context, r *run) error {
	service, err := r.open(ctx, workload.NewLinks(r.cfg.Links))
	if err != nil {
		return err
	}
	return r.creating(ctx, service, func(created *atomic.Int64) error {
		l := r.load(false)
		l.Conns = min(l.Conns, bulkConns)
		l.Threads = min(l.Threads, l.Conns)
		whole := perLink(contender.Called(service.Name, service, l, func(int) load.Source {
			return &bulkRequest{api: service.API, created: created}
		}))
		contenders := []*contender.Contender{whole}
		if r.cfg.System.Start {
			insert, err := service.Engines.BareBulkInsert(ctx, schema.MaxLinkBatch)
			if err != nil {
				return err
			}
			contenders = []*contender.Contender{perLink(contender.LinkCalls(insert)), whole}
		}
		return r.closedLoop(ctx, "link", contenders)
	})
}

// perLink returns a contender of calls as one of links.
func perLink(c *contender.Contender) *contender.Contender {
	work := c.Work
	c.Work = func(ctx context.Context, window time.Duration) (load.Result, error) {
		result, err := work(ctx, window)
		result.Answers *= schema.MaxLinkBatch
		return result, err
	}
	return c
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
	return nil
}
