package rest

import (
	"bytes"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/api/links"
	"linkstream/schema"
)

// timeLayout has a numeric offset, also for UTC: +00:00, not Z.
const timeLayout = "2006-01-02T15:04:05-07:00"

func formatTime(t time.Time) string { return t.UTC().Format(timeLayout) }

type createdLink struct {
	Success     bool   `json:"success"`
	ShortURL    string `json:"short_url"`
	OriginalURL string `json:"original_url"`
	Hash        string `json:"hash"`
	CreatedAt   string `json:"created_at"`
}

// createLink answers POST /api/v1/shorten.
func (a *API) createLink(c *call) error {
	return a.once(c, fasthttp.StatusCreated, func(record *links.Record) error {
		body, err := decodeBody(c)
		if err != nil {
			return err
		}
		req := links.Request{AccountID: c.account}
		body.setRequest(&req)
		var result links.Result
		switch {
		case record != nil:
			result, err = a.createRecorded(c, req, record)
		case req.Reuse:
			result, err = a.createOne(c, req, nil)
		default:
			result.Link, err = a.shortener.Create(c.ctx, req)
		}
		if err != nil {
			return withOutage(creatingLinks, err)
		}
		status := fasthttp.StatusCreated
		if result.Reused {
			status = fasthttp.StatusOK
		}
		return answer(c.http, status, a.newCreatedLink(result.Link))
	})
}

// createRecorded creates a link by a call that is recorded, unless it fails.
func (a *API) createRecorded(c *call, req links.Request, record *links.Record) (links.Result, error) {
	record.Answer = func(results []links.Result) ([]byte, error) {
		if results[0].Err != nil {
			return nil, nil
		}
		var text bytes.Buffer
		if results[0].Reused {
			text.WriteString(recordedOK)
		}
		err := encode(&text, a.newCreatedLink(results[0].Link))
		return compress(text.Bytes()), err
	}
	return a.createOne(c, req, record)
}

// createOne is links.CreateOnce for one link.
func (a *API) createOne(c *call, req links.Request, record *links.Record) (links.Result, error) {
	results, err := a.shortener.CreateOnce(c.ctx, []links.Request{req}, record)
	if err != nil {
		return links.Result{}, err
	}
	return results[0], results[0].Err
}

func (a *API) newCreatedLink(link schema.Link) createdLink {
	return createdLink{
		Success:     true,
		ShortURL:    a.shortener.ShortURL(link),
		OriginalURL: link.URL,
		Hash:        link.Hash,
		CreatedAt:   formatTime(link.CreatedAt),
	}
}

type linkItem struct {
	Hash        string `json:"hash"`
	ShortURL    string `json:"short_url"`
	OriginalURL string `json:"original_url"`
	Clicks      int64  `json:"clicks"`
	IsActive    bool   `json:"is_active"`
	CreatedAt   string `json:"created_at"`
	DeletedAt   string `json:"deleted_at,omitempty"` // of a deleted link
}

// listLinks answers GET /api/v1/links.
func (a *API) listLinks(c *call) error {
	if req, asked := cursorRequest(c); asked {
		return a.listAfter(c, req)
	}
	req := listRequest(c)
	found, total, err := a.shortener.List(c.ctx, a.clicks.Of(c.account), req)
	if err != nil {
		return withOutage(readingLinks, err)
	}
	items, err := a.linkItems(c, found)
	if err != nil {
		return err
	}
	return answer(c.http, fasthttp.StatusOK, newPage(req.Page, total, items))
}

// linkItems returns the items of a list.
func (a *API) linkItems(c *call, found []schema.Link) ([]linkItem, error) {
	ids := make([]int64, len(found))
	for i, link := range found {
		ids[i] = link.ID
	}
	clicks, err := a.clicks.Of(c.account).ClickCounts(c.ctx, ids)
	if err != nil {
		return nil, withOutage(readingClicks, err)
	}
	items := make([]linkItem, len(found))
	for i, link := range found {
		items[i] = linkItem{
			Hash:        link.Hash,
			ShortURL:    a.shortener.ShortURL(link),
			OriginalURL: link.URL,
			Clicks:      clicks[link.ID],
			IsActive:    link.Redirects(),
			CreatedAt:   formatTime(link.CreatedAt),
		}
		if link.Stopped == schema.Deleted {
			items[i].DeletedAt = formatTime(link.UpdatedAt)
		}
	}
	return items, nil
}

// listRequest decodes the query of a list.
func listRequest(c *call) links.ListRequest {
	args, invalid := c.http.QueryArgs(), map[string][]string{}
	req := links.ListRequest{AccountID: c.account, Query: string(args.Peek("q")), Tag: string(args.Peek("tag")),
		Sort: string(args.Peek("sort"))}
	var ok bool
	if req.Page, ok = pageNumber(c); !ok {
		invalid["page"] = []string{badPage}
	}
	if args.Has("domain_id") {
		id, err := strconv.ParseInt(string(args.Peek("domain_id")), 10, 64)
		if req.DomainID = &id; err != nil {
			invalid["domain_id"] = []string{badDomainID}
		}
	}
	if args.Has("is_active") {
		active := string(args.Peek("is_active"))
		if req.IsActive = new(active == "true"); active != "true" && active != "false" {
			invalid["is_active"] = []string{"This must be true or false."}
		}
	}
	if args.Has("deleted") {
		deleted := string(args.Peek("deleted"))
		if req.Deleted = deleted == "true"; !req.Deleted && deleted != "false" {
			invalid["deleted"] = []string{badActive}
		}
	}
	req.Malformed = invalid
	return req
}

type tagItem struct {
	Tag    string `json:"tag"`
	Links  int64  `json:"links"`
	Clicks int64  `json:"clicks"`
}

// listTags answers GET /api/v1/tags.
func (a *API) listTags(c *call) error {
	tags, _, err := a.shortener.Tags(c.ctx, c.account, string(c.http.QueryArgs().Peek(links.FieldAfter)))
	if err == nil {
		err = a.shortener.CountClicks(c.ctx, a.clicks.Of(c.account), c.account, tags)
	}
	if err != nil {
		return withOutage(readingLinks, err)
	}
	items := make([]tagItem, len(tags))
	for i, tag := range tags {
		items[i] = tagItem(tag)
	}
	return answer(c.http, fasthttp.StatusOK, list[tagItem]{true, items})
}

const badDomainID = "The domain id must be an integer."

func invalidField(field, problem string) error {
	return links.InvalidFields(map[string][]string{field: {problem}})
}
