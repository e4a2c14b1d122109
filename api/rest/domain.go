package rest

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"linkstream/schema"
)

type domainItem struct {
	ID        int64  `json:"id"`
	Host      string `json:"host"`
	Verified  bool   `json:"verified"`
	CreatedAt string `json:"created_at"`
}

type domainPage struct {
	Success bool         `json:"success"`
	Data    []domainItem `json:"data"`
	Meta    pageMeta     `json:"meta"`
}

// listDomains answers GET /api/v1/domains. An account has few enough domains to read them all.
func (a *API) listDomains(c *call) error {
	page, ok := pageNumber(c)
	if !ok {
		return invalidField("page", badPage)
	}
	domains, err := a.links.Domains(c.ctx, c.account)
	if err != nil {
		return withOutage("Domains cannot be read", err)
	}
	total := int64(len(domains))
	meta := newPageMeta(page, total)
	items := []domainItem{}
	if page <= meta.LastPage {
		for _, d := range domains[(page-1)*schema.PageSize : min(page*schema.PageSize, total)] {
			items = append(items, domainItem{d.ID, d.Host, !d.VerifiedAt.IsZero(), formatTime(d.CreatedAt)})
		}
	}
	return answer(c.http, fasthttp.StatusOK, domainPage{true, items, meta})
}

const badPage = "The page must be a positive integer."

// pageNumber returns the page that a query asks for, 1 by default. ok is false if it is not one.
func pageNumber(c *call) (page int64, ok bool) {
	args := c.http.QueryArgs()
	if !args.Has("page") {
		return 1, true
	}
	n, err := strconv.ParseUint(string(args.Peek("page")), 10, 63)
	return int64(n), err == nil && n > 0
}

func newPageMeta(page, total int64) pageMeta {
	lastPage := max(1, (total+schema.PageSize-1)/schema.PageSize) // an empty list has one page
	return pageMeta{page, lastPage, schema.PageSize, total}
}
