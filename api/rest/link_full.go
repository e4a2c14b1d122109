package rest

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/api/links"
	"linkstream/api/request"
	"linkstream/schema"
)

// fullLink is a link with all its fields.
type fullLink struct {
	linkFields
	Clicks     *int64 `json:"clicks"`
	ClicksLeft *int64 `json:"clicks_left"`
}

// linkFields are the fields of a link that belong to the link itself.
type linkFields struct {
	Hash         string           `json:"hash"`
	FormerHashes []string         `json:"former_hashes"`
	ShortURL     string           `json:"short_url"`
	OriginalURL  string           `json:"original_url"`
	DomainID     *int64           `json:"domain_id"`
	Title        string           `json:"title"`
	Tags         []string         `json:"tags"`
	IsActive     bool             `json:"is_active"`
	ExpiresAt    *string          `json:"expires_at"`
	ExpiredURL   *string          `json:"expired_url"`
	ForwardQuery bool             `json:"forward_query"`
	Rules        []schema.Rule    `json:"rules"`
	Variants     []schema.Variant `json:"variants"`
	Card         *schema.Card     `json:"card"`
	HasPassword  bool             `json:"has_password"`
	MaxClicks    *int64           `json:"max_clicks"`
	PathMode     schema.PathMode  `json:"path_mode"`
	ExternalID   *string          `json:"external_id"`
	CreatedAt    string           `json:"created_at"`
	UpdatedAt    string           `json:"updated_at"`
}

type linkAnswer struct {
	Success bool     `json:"success"`
	Link    fullLink `json:"link"`
}

// readLink answers GET /api/v1/links/{hash}.
func (a *API) readLink(c *call, link schema.Link) error {
	_, err := precondition(c.http, link)
	if errors.Is(err, errNotModified) {
		c.http.Response.Header.Set(fasthttp.HeaderETag, tagOf(link))
		c.http.SetStatusCode(fasthttp.StatusNotModified)
		return nil
	}
	if err != nil {
		return err
	}
	return a.answerLink(c, link)
}

// editLink answers PATCH /api/v1/links/{hash}.
func (a *API) editLink(c *call, link schema.Link) error {
	unchanged, err := precondition(c.http, link)
	if err != nil {
		return err
	}
	body, err := decodeBody(c)
	if err != nil {
		return err
	}
	edit := body.edit()
	edit.Unchanged = unchanged
	link, err = a.shortener.Edit(c.ctx, link, edit)
	if err != nil {
		return withOutage("Links cannot be changed", ifChanged(unchanged, err))
	}
	return a.answerLink(c, link)
}

// deleteLink answers DELETE /api/v1/links/{hash}.
func (a *API) deleteLink(c *call, link schema.Link) error {
	unchanged, err := precondition(c.http, link)
	if err != nil {
		return err
	}
	if err := a.shortener.Delete(c.ctx, link, unchanged); err != nil {
		return withOutage("Links cannot be deleted", ifChanged(unchanged, err))
	}
	return answer(c.http, fasthttp.StatusOK, done{true})
}

// restoreLink answers POST /api/v1/links/{hash}/restore.
func (a *API) restoreLink(c *call) error {
	hash, domainID, err := linkInPath(c)
	if err != nil {
		return err
	}
	link, err := a.shortener.Restore(c.ctx, c.account, hash, domainID)
	if err != nil {
		return withOutage("Links cannot be restored", err)
	}
	return a.answerLink(c, link)
}

// linkInPath returns the hash in the path, or an external ID after "ext:", and the domain in the query if there is one.
func linkInPath(c *call) (hash string, domainID *int64, err error) {
	if args := c.http.QueryArgs(); args.Has("domain_id") {
		id, err := strconv.ParseInt(string(args.Peek("domain_id")), 10, 64)
		if err != nil {
			return "", nil, invalidField("domain_id", badDomainID)
		}
		domainID = &id
	}
	if hash, err = url.PathUnescape(c.http.UserValue("hash").(string)); err != nil {
		return "", nil, links.NotFound()
	}
	return hash, domainID, nil
}

// ownedLink returns the caller's link with the hash in the path, on the domain in the query if there is one.
func (a *API) ownedLink(c *call) (schema.Link, error) {
	hash, domainID, err := linkInPath(c)
	if err != nil {
		return schema.Link{}, err
	}
	link, err := a.shortener.OwnedLink(c.ctx, c.account, hash, domainID)
	return link, withOutage(readingLinks, err)
}

// ofLink lets handle answer for the caller's link that the path names.
func (a *API) ofLink(handle func(*call, schema.Link) error) func(*call) error {
	return func(c *call) error {
		link, err := a.ownedLink(c)
		if err != nil {
			return err
		}
		return handle(c, link)
	}
}

// countWait is how long the answer about a link waits for its numbers.
const countWait = 300 * time.Millisecond

// answerLink answers with a link, its clicks and its tag, as GET /api/v1/links/{hash}. Numbers that the stores do not
// give in time are null: the call may have changed the link.
func (a *API) answerLink(c *call, link schema.Link) error {
	return a.answerLinkAs(c, fasthttp.StatusOK, link)
}

// answerLinkAs is answerLink with a status.
func (a *API) answerLinkAs(c *call, status int, link schema.Link) error {
	ctx, cancel := context.WithTimeout(c.ctx, countWait)
	defer cancel()
	full := fullLink{linkFields: newLinkFields(a.shortener, link)}
	var unread error
	if full.MaxClicks != nil {
		use, err := a.links.LimitUse(ctx, []int64{link.ID})
		if unread = err; err == nil {
			full.ClicksLeft = new(max(0, *full.MaxClicks-use[link.ID].Spent))
		}
	}
	clicks, err := a.countSoon(ctx, c.account, link.ID)
	if full.Clicks = clicks; err != nil || unread != nil {
		a.log.Warn("cannot read numbers of a link", "request_id", request.ID(c.http), "error", errors.Join(err, unread))
	}
	c.http.Response.Header.Set(fasthttp.HeaderETag, tagOf(link))
	return answer(c.http, status, linkAnswer{true, full})
}

// countSoon returns the clicks of a link. It ends with ctx, although the click store may take longer to give up.
func (a *API) countSoon(ctx context.Context, account, link int64) (clicks *int64, err error) {
	type count struct {
		clicks *int64
		err    error
	}
	counted := make(chan count, 1)
	go func() {
		counts, err := a.clicks.Of(account).ClickCounts(ctx, []int64{link})
		if err != nil {
			counted <- count{nil, err}
			return
		}
		counted <- count{new(counts[link]), nil}
	}()
	select {
	case c := <-counted:
		return c.clicks, c.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// LinkFields returns the fields of a link, as in answers about it, for events.
func LinkFields(shortener *links.Shortener, link schema.Link) any {
	return newLinkFields(shortener, link)
}

func newLinkFields(shortener *links.Shortener, link schema.Link) linkFields {
	full := linkFields{
		Hash: link.Hash, FormerHashes: append([]string{}, link.FormerHashes...), ShortURL: shortener.ShortURL(link),
		OriginalURL: link.URL, Title: link.Title, Tags: link.Tags,
		IsActive: link.Redirects(), ForwardQuery: link.ForwardQuery,
		CreatedAt: formatTime(link.CreatedAt), UpdatedAt: formatTime(link.UpdatedAt), PathMode: link.PathMode(),
	}
	if link.DomainID != 0 {
		full.DomainID = &link.DomainID
	}
	if full.Tags == nil {
		full.Tags = []string{}
	}
	if !link.ExpiresAt.IsZero() {
		full.ExpiresAt = new(formatTime(link.ExpiresAt))
	}
	if link.ExpiredURL != "" {
		full.ExpiredURL = &link.ExpiredURL
	}
	if link.ExternalID != "" {
		full.ExternalID = &link.ExternalID
	}
	full.Rules = []schema.Rule{}
	if e := link.Behaviour; e != nil {
		full.Rules, full.Variants, full.Card = append(full.Rules, e.Rules...), e.Variants, e.Card
		full.HasPassword = e.Password != 0
		if e.MaxClicks != 0 {
			full.MaxClicks = &e.MaxClicks
		}
	}
	return full
}
