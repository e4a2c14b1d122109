package rest

import (
	"context"
	"strconv"

	"github.com/valyala/fasthttp"

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
