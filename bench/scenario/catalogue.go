package scenario

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"linkstream/bench/contender"
	"linkstream/bench/load"
	"linkstream/bench/report"
	"linkstream/bench/system"
	"linkstream/bench/workload"
	"linkstream/schema"
)

const (
	catalogue = "catalogue"

	catalogueLinks    = 1_000_000 // of the largest account, unless -links says otherwise
	catalogueRate     = 10        // pages per second, unless -rate says otherwise; the dashboard allows an account 20
	catalogueDuration = time.Minute
	catalogueSteps    = 3 // sizes of accounts, each ten times the one before
	catalogueClicks   = 1000
	// catalogueHot is the share of the clicks on the first link, which makes it the first of the overview.
	catalogueHot = 0.05
	wholeTimeout = time.Minute // until a page has all that belongs to it
)

// shownPage is a page that the owner of links sees, of the dashboard or of the API.
type shownPage struct {
	name    string
	request func(dst []byte, api *system.API, c system.Catalogue) []byte
	// has is what the page must contain.
	has func(c system.Catalogue) string
}

// of names the page of a catalogue in reports.
func (p *shownPage) of(c system.Catalogue) string {
	return fmt.Sprintf("%s, %d links", p.name, c.Links.Count)
}

// shownPages returns the pages whose cost could grow with the links of an account.
func shownPages() []shownPage {
	dashboard := func(path func(system.Catalogue) string) func([]byte, *system.API, system.Catalogue) []byte {
		return func(dst []byte, api *system.API, c system.Catalogue) []byte {
			return api.AppendPage(dst, c.Session, path(c))
		}
	}
	fixed := func(path string) func(system.Catalogue) string { return func(system.Catalogue) string { return path } }
	newest := func(c system.Catalogue) string { return c.Links.Hash(c.Links.Count - 1) }
	oldest := func(c system.Catalogue) string { return c.Links.Hash(0) }
	ends := func(c system.Catalogue) int { return (c.Links.Count + schema.PageSize - 1) / schema.PageSize }
	return []shownPage{
		{"overview", dashboard(fixed("/dashboard")), func(c system.Catalogue) string { return "/dashboard/links/0/" + c.Links.Hash(0) + "\"" }},
		{"first dashboard page", dashboard(fixed("/dashboard/links")), newest},
		{"last dashboard page",
			dashboard(func(c system.Catalogue) string { return fmt.Sprint("/dashboard/links?page=", ends(c)) }), oldest},
		{"search",
			dashboard(func(c system.Catalogue) string { return "/dashboard/links?q=" + oldest(c) }), oldest},
		{"first API page", func(dst []byte, api *system.API, _ system.Catalogue) []byte {
			return api.AppendRequest(dst, http.MethodGet, "/api/v1/links", nil)
		}, newest},
		{"last API page", func(dst []byte, api *system.API, c system.Catalogue) []byte {
			return api.AppendRequest(dst, http.MethodGet, fmt.Sprint("/api/v1/links?page=", ends(c)), nil)
		}, oldest},
	}
}

// runCatalogue measures what the owners of more and more links wait for: the overview and lists of the dashboard and the API, of three
// accounts in one service. Each account has as many clicks as links in the last days.
func runCatalogue(ctx context.Context, r *run) error {
	if !r.cfg.System.Start {
		return errors.New("catalogue: add -start, as it creates accounts")
	}
	r.cfg.Conns, r.cfg.Generators = 1, 1 // each page is the only one that is made
	r.cfg.unlessSet("links", func() { r.cfg.Links = catalogueLinks })
	r.cfg.unlessSet("rate", func() { r.cfg.Rate = catalogueRate })
	r.cfg.unlessSet("duration", func() { r.cfg.Duration = catalogueDuration })
	service, all, err := r.openCatalogues(ctx)
	if err != nil {
		return err
	}
	pages := shownPages()
	r.cfg.Duration /= time.Duration(len(pages))
	for _, page := range pages {
		var contenders []*contender.Contender
		var sizes []float64
		for _, c := range all {
			api := service.API.Of(c)
			if err := r.firstPage(ctx, page, api, c); err != nil {
				return err
			}
			contenders = append(contenders, r.called(page.of(c), service, func(int) load.Source {
				return &pageLoad{page: page, api: api, catalogue: c}
			}))
			sizes = append(sizes, float64(c.Links.Count))
		}
		if err := r.openLoop(ctx, "page", contenders); err != nil {
			return err
		}
		r.addGrowth("page", page.name, "links", sizes, contenders)
	}
	return nil
}

// openCatalogues starts the service with accounts of different sizes, the smallest first.
func (r *run) openCatalogues(ctx context.Context) (*system.Service, []system.Catalogue, error) {
	var all []system.Catalogue
	first := workload.NewLinks(1) // of the account that every started service has
	service, err := r.openFilled(ctx, first, func(ctx context.Context, on system.Engines) error {
		id := int64(first.Count) + 1
		for step := range catalogueSteps {
			links := workload.NewLinks(r.cfg.Links)
			for range catalogueSteps - 1 - step {
				links.Count = max(1, links.Count/10)
			}
			r.logf("creating an account with %d links and as many clicks", links.Count)
			c, err := system.CreateCatalogue(ctx, on, id, links)
			if err != nil {
				return err
			}
			if err := storeHistory(ctx, on, c); err != nil {
				return err
			}
			id += int64(links.Count)
			all = append(all, c)
		}
		return on.AwaitMerges(ctx)
	})
	return service, all, err
}

// storeHistory stores clicks of the last days on the links of a catalogue. The first link has the most.
func storeHistory(ctx context.Context, on system.Engines, c system.Catalogue) error {
	h := workload.NewHistory(c.Links, catalogueHot)
	h.AccountID, h.FirstID = c.Account, c.FirstID
	store, err := on.OpenClicks(ctx, "")
	if err != nil {
		return err
	}
	return errors.Join(h.Store(ctx, store, max(catalogueClicks, c.Links.Count)), store.Close())
}

// firstPage measures how long someone waits for a page that nobody has asked for before. A page without clicks is asked for again, as
// browsers do.
func (r *run) firstPage(ctx context.Context, page shownPage, api *system.API, c system.Catalogue) error {
	ctx, cancel := context.WithTimeout(ctx, wholeTimeout)
	defer cancel()
	for began := time.Now(); ; {
		status, body, err := api.Send(ctx, page.request(nil, api, c))
		switch {
		case err != nil:
			return fmt.Errorf("first page: %s: %w", page.of(c), err)
		case status != http.StatusOK:
			return fmt.Errorf("first page: %s: status %d: %.200s", page.of(c), status, body)
		case bytes.Contains(body, []byte(page.has(c))):
			took := millis(time.Since(began).Nanoseconds())
			r.report.Add("time until the first page: "+page.of(c), "ms", report.Lower, took)
			r.logf("first page: %s: %.1f ms", page.of(c), took)
			return nil
		}
	}
}

// pageLoad requests a page again and again.
type pageLoad struct {
	page      shownPage
	api       *system.API
	catalogue system.Catalogue
}

// Append implements load.Source.
func (p *pageLoad) Append(dst []byte) []byte { return p.page.request(dst, p.api, p.catalogue) }

// Check implements load.Source.
func (p *pageLoad) Check(a load.Answer) error {
	if a.Status != http.StatusOK {
		return system.StatusError(a)
	}
	if want := p.page.has(p.catalogue); !bytes.Contains(a.Body, []byte(want)) {
		return fmt.Errorf("%s: %q is not in an answer of %d bytes", p.page.name, want, len(a.Body))
	}
	return nil
}
