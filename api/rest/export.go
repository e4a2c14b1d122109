package rest

import (
	"context"
	"errors"
	"io"

	"github.com/valyala/fasthttp"

	"linkstream/api/request"
	"linkstream/api/transfer"
	"linkstream/schema"
	"linkstream/schema/turns"
)

// exportedLink is a line of an export.
type exportedLink struct {
	fullLink
	DeletedAt string `json:"deleted_at,omitempty"` // of a deleted link
}

// exportedPerRequest is the number of exported links that count as one request.
const exportedPerRequest = 10_000

var (
	errExporting = &httpError{status: fasthttp.StatusTooManyRequests, message: "An export of your account is under way: " +
		"try again when it has ended."}
	errExports = schema.ClientErrorf(schema.CodeBusy, "Other exports are under way: try again later.")
)

// export answers GET /api/v1/export.
func (a *API) export(c *call) error {
	req := listRequest(c)
	format := string(c.http.QueryArgs().Peek("format"))
	if format != "ndjson" && format != "csv" {
		req.Malformed["format"] = []string{"The format is ndjson or csv."}
	}
	for _, name := range []string{"page", "sort"} {
		if c.http.QueryArgs().Has(name) {
			req.Malformed[name] = []string{"An export has all links, in the order of their creation: leave this out."}
		}
	}
	filter, err := a.shortener.Filter(c.ctx, req)
	if err != nil {
		return withOutage(readingLinks, err)
	}
	_, total, err := a.links.Links(c.ctx, c.account, filter, 1)
	if err != nil {
		return withOutage(readingLinks, err)
	}
	if further := (total - 1) / exportedPerRequest; further > 0 {
		if _, err := a.count(c, int(further)); err != nil {
			return err
		}
	}
	account, files := c.account, transfer.NewExporter(a.shortener.Base(), a.links, a.clicks.Of(c.account))
	write := func(ctx context.Context, to io.Writer) error {
		_, err := files.Export(ctx, account, filter, to)
		return err
	}
	if format == "ndjson" {
		write = func(ctx context.Context, to io.Writer) error {
			return files.Pages(ctx, account, filter, func(page []schema.Link, counts map[int64]int64) error {
				return a.writeLines(ctx, to, page, counts)
			})
		}
	}
	switch err := a.files.Send(c.http, turns.Account(account), write); {
	case errors.Is(err, request.ErrFileOfClient):
		c.http.Response.Header.Set("Retry-After", storeRetryAfter)
		return errExporting
	case errors.Is(err, request.ErrFiles):
		return errExports
	case err != nil:
		return withOutage(readingLinks, err)
	}
	c.http.SetStatusCode(fasthttp.StatusOK)
	if format == "csv" {
		c.http.SetContentType("text/csv; charset=utf-8; header=present")
	} else {
		c.http.SetContentType("application/x-ndjson")
	}
	c.http.Response.Header.Set(fasthttp.HeaderContentDisposition, `attachment; filename="links.`+format+`"`)
	return nil
}

// writeLines writes a line of JSON for each link.
func (a *API) writeLines(
	ctx context.Context, to io.Writer, page []schema.Link, counts map[int64]int64,
) error {
	var limited []int64
	for _, link := range page {
		if link.Behaviour != nil && link.Behaviour.MaxClicks != 0 {
			limited = append(limited, link.ID)
		}
	}
	use := map[int64]schema.LimitUse{}
	if len(limited) > 0 {
		var err error
		if use, err = a.links.LimitUse(ctx, limited); err != nil {
			return err
		}
	}
	for _, link := range page {
		line := exportedLink{fullLink: fullLink{linkFields: newLinkFields(a.shortener, link), Clicks: new(counts[link.ID])}}
		if line.MaxClicks != nil {
			line.ClicksLeft = new(max(0, *line.MaxClicks-use[link.ID].Spent))
		}
		if link.Stopped == schema.Deleted {
			line.DeletedAt = formatTime(link.UpdatedAt)
		}
		if err := encode(to, line); err != nil {
			return err
		}
	}
	return nil
}
