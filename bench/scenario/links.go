package scenario

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"linkstream/bench/contender"
	"linkstream/bench/load"
	"linkstream/bench/system"
	"linkstream/bench/workload"
	"linkstream/schema"
)

// runLinks measures the first page and the last full page of the list of links.
func runLinks(ctx context.Context, r *run) error {
	h := workload.NewHistory(workload.NewLinks(r.cfg.Links), r.cfg.Hot)
	service, err := r.openWithHistory(ctx, h)
	if err != nil {
		return err
	}
	var contenders []*contender.Contender
	for _, page := range []int{1, lastPage(r.cfg.Links)} {
		newest := h.Links.Hash(h.Links.Count - 1 - (page-1)*schema.PageSize)
		contenders = append(contenders, r.called(fmt.Sprintf("page %d", page), service, func(int) load.Source {
			return &pageRequest{api: service.API, page: page, newest: newest}
		}))
	}
	if err := r.closedLoop(ctx, "list call", contenders); err != nil {
		return err
	}
	return r.openLoop(ctx, "list call", contenders)
}

// lastPage returns the last full page of a list.
func lastPage(links int) int { return max(1, links/schema.PageSize) }

// pageRequest requests a page of the list.
type pageRequest struct {
	api    *system.API
	page   int
	newest string // hash of the first link on the page
}

// Append implements load.Source.
func (p *pageRequest) Append(dst []byte) []byte {
	return p.api.AppendRequest(dst, http.MethodGet, fmt.Sprintf("/api/v1/links?page=%d", p.page), nil)
}

// Check implements load.Source.
func (p *pageRequest) Check(a load.Answer) error {
	if a.Status != http.StatusOK {
		return system.StatusError(a)
	}
	if !bytes.Contains(a.Body, []byte(`[{"hash":"`+p.newest+`"`)) {
		return fmt.Errorf("page %d does not begin with link %q: %.200s", p.page, p.newest, a.Body)
	}
	return nil
}
