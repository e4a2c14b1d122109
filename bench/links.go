package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"linkstream/bench/load"
	"linkstream/schema"
)

// runLinks measures the list of links: its first page and its last one.
func runLinks(ctx context.Context, b *bench) error {
	h := newHistory(newLinkSet(b.cfg.Links), b.cfg.Hot)
	service, err := b.openWithHistory(ctx, h)
	if err != nil {
		return err
	}
	// The last page but one is the last that is full.
	last := max(1, b.cfg.Links/schema.PageSize)
	var subjects []*subject
	for _, page := range []int{1, last} {
		s := b.apiSubject(service, func(int) load.Source {
			return &pageCall{api: service.api, page: page, newest: h.links.hash(h.links.count - 1 - (page-1)*schema.PageSize)}
		})
		s.name = fmt.Sprintf("page %d", page)
		subjects = append(subjects, s)
	}
	if err := b.rounds(ctx, "list call", subjects); err != nil {
		return err
	}
	return b.openLoop(ctx, "list call", subjects)
}

// pageCall makes requests for a page of the list.
type pageCall struct {
	api    *api
	page   int
	newest string // hash of the first link on it
}

// Append implements load.Source.
func (p *pageCall) Append(dst []byte) []byte {
	return p.api.appendCall(dst, http.MethodGet, fmt.Sprintf("/api/v1/links?page=%d", p.page), nil)
}

// Check implements load.Source.
func (p *pageCall) Check(a load.Answer) error {
	if a.Status != http.StatusOK {
		return statusError(a)
	}
	if !bytes.Contains(a.Body, []byte(`[{"hash":"`+p.newest+`"`)) {
		return fmt.Errorf("page %d does not begin with link %q: %.200s", p.page, p.newest, a.Body)
	}
	return nil
}
