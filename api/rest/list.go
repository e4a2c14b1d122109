package rest

import (
	"context"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"linkstream/api/links"
	"linkstream/schema"
)

// list is the answer of a list without pages.
type list[T any] struct {
	Success bool `json:"success"`
	Data    []T  `json:"data"`
}

// page is the answer of a list with pages.
type page[T any] struct {
	list[T]
	Meta pageMeta `json:"meta"`
}

type pageMeta struct {
	CurrentPage int64 `json:"current_page"`
	LastPage    int64 `json:"last_page"`
	PerPage     int64 `json:"per_page"`
	Total       int64 `json:"total"`
}

func newPage[T any](number, total int64, items []T) page[T] {
	last := max(1, (total+schema.PageSize-1)/schema.PageSize) // an empty list has one page
	return page[T]{list[T]{true, items}, pageMeta{number, last, schema.PageSize, total}}
}

// answerPage answers with a page of the caller's objects of one kind. An account has few enough of them to read them
// all.
func answerPage[S, T any](
	c *call, outage string, read func(ctx context.Context, account int64) ([]S, error), item func(S) T,
) error {
	number, ok := pageNumber(c)
	if !ok {
		return invalidField("page", badPage)
	}
	all, err := read(c.ctx, c.account)
	if err != nil {
		return withOutage(outage, err)
	}
	items := []T{}
	for i, object := range all {
		if int64(i)/schema.PageSize+1 == number {
			items = append(items, item(object))
		}
	}
	return answer(c.http, fasthttp.StatusOK, newPage(number, int64(len(all)), items))
}

const badPage = "The page must be a positive integer."

// pageNumber returns the page that a query asks for, 1 by default. ok is false if it is not one.
func pageNumber(c *call) (number int64, ok bool) {
	args := c.http.QueryArgs()
	if !args.Has("page") {
		return 1, true
	}
	n, err := strconv.ParseUint(string(args.Peek("page")), 10, 63)
	return int64(n), err == nil && n > 0
}

// cursorPage is the answer of a list that is read by cursors.
type cursorPage[T any] struct {
	list[T]
	Meta cursorMeta `json:"meta"`
}

type cursorMeta struct {
	Next *string `json:"next"`
}

const badSince = "The time must be ISO 8601 with an offset, as in 2026-11-21T09:30:15+00:00."

// cursorRequest decodes the query of a list that is read by cursors. asked is false if the query does not ask for that.
func cursorRequest(c *call) (req links.CursorRequest, asked bool) {
	args := c.http.QueryArgs()
	for _, name := range []string{links.FieldLimit, links.FieldAfter, links.FieldUpdatedSince} {
		asked = asked || args.Has(name)
	}
	if !asked {
		return req, false
	}
	req = links.CursorRequest{ListRequest: listRequest(c), Limit: schema.PageSize,
		After: string(args.Peek(links.FieldAfter))}
	if args.Has("page") {
		req.Malformed["page"] = []string{"A list has either pages or cursors: leave page out."}
	}
	if args.Has(links.FieldLimit) {
		req.Limit, _ = strconv.Atoi(string(args.Peek(links.FieldLimit))) // 0 is out of range, too
	}
	if args.Has(links.FieldUpdatedSince) {
		text := string(args.Peek(links.FieldUpdatedSince))
		since, err := schema.ParseTime(text)
		if i := strings.LastIndexByte(text, ' '); err != nil && i > 0 { // a plus sign that was not encoded
			since, err = schema.ParseTime(text[:i] + "+" + text[i+1:])
		}
		if req.UpdatedSince = &since; err != nil {
			req.Malformed[links.FieldUpdatedSince] = []string{badSince}
		}
	}
	return req, true
}

// listAfter answers with a page of links that follows a cursor.
func (a *API) listAfter(c *call, req links.CursorRequest) error {
	found, err := a.shortener.ListAfter(c.ctx, req)
	if err != nil {
		return withOutage(readingLinks, err)
	}
	items, err := a.linkItems(c, found.Links)
	if err != nil {
		return err
	}
	body := cursorPage[linkItem]{list: list[linkItem]{true, items}}
	if found.Next != "" {
		body.Meta.Next = &found.Next
	}
	return answer(c.http, fasthttp.StatusOK, body)
}
