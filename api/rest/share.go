package rest

import (
	"github.com/valyala/fasthttp"

	"linkstream/api/auth"
	"linkstream/api/request"
	"linkstream/api/sharing"
	"linkstream/schema"
)

type shareItem struct {
	ID          int64   `json:"id"`
	URL         string  `json:"url,omitempty"` // of a share that was just created
	Hash        *string `json:"hash"`
	DomainID    *int64  `json:"domain_id"`
	Tag         *string `json:"tag"`
	ExpiresAt   *string `json:"expires_at"`
	HasPassword bool    `json:"has_password"`
	HideTargets bool    `json:"hide_targets"`
	CreatedAt   string  `json:"created_at"`
}

type shareAnswer struct {
	Success bool      `json:"success"`
	Share   shareItem `json:"share"`
}

func newShareItem(s schema.Share) shareItem {
	item := shareItem{ID: s.ID, Hash: orNil(s.Hash), DomainID: s.DomainID, Tag: orNil(s.Tag),
		HasPassword: s.PasswordHash != "",
		HideTargets: s.HideTargets, CreatedAt: formatTime(s.CreatedAt)}
	if s.LinkID != 0 && *s.DomainID == 0 {
		item.DomainID = nil // as links have it
	}
	if !s.ExpiresAt.IsZero() {
		item.ExpiresAt = new(formatTime(s.ExpiresAt))
	}
	return item
}

func (a *API) routeShares() {
	a.route(fasthttp.MethodPost, pathShares, request.Passwords, a.createShare)
	a.route(fasthttp.MethodGet, pathShares, request.Constant, a.listShares)
	a.route(fasthttp.MethodGet, pathShare, request.Constant, a.getShare)
	a.route(fasthttp.MethodDelete, pathShare, request.Constant, a.deleteShare)
}

const (
	shareOutage = "Shared reports cannot be read or changed"
	noShare     = "There is no such shared report."
)

// createShare answers POST /api/v1/shares.
func (a *API) createShare(c *call) error {
	body, err := decodeBody(c)
	if err != nil {
		return err
	}
	body.emptyIsMissing = true
	readsLinks := schema.HasScope(c.scopes, schema.ScopeReadLinks)
	req := sharing.Request{AccountID: c.account, TokenID: c.token, HideTargets: !readsLinks}
	body.decodeOptional(sharing.FieldHash, &req.Hash, "The hash must be a string or null.")
	body.decodeOptional(sharing.FieldTag, &req.Tag, "The tag must be a string or null.")
	body.decode(sharing.FieldDomainID, &req.DomainID, badDomainID)
	req.ExpiresAt = body.time(sharing.FieldExpiresAt)
	body.decodeOptional(sharing.FieldPassword, &req.Password, "The password must be a string or null.")
	body.decode(sharing.FieldHideTargets, &req.HideTargets, badActive)
	if body.isNull(sharing.FieldHideTargets) {
		body.reject(sharing.FieldHideTargets, badActive)
	}
	req.Malformed = body.malformed
	if len(body.malformed) == 0 && !req.HideTargets && !readsLinks {
		return errScope // readers would see what the token does not
	}
	share, url, err := a.shares.Create(c.ctx, req)
	if err != nil {
		return shareError(err)
	}
	item := newShareItem(share)
	item.URL = url
	return answer(c.http, fasthttp.StatusCreated, shareAnswer{true, item})
}

// listShares answers GET /api/v1/shares.
func (a *API) listShares(c *call) error {
	return answerPage(c, shareOutage, a.links.Shares, newShareItem)
}

// getShare answers GET /api/v1/shares/{id}.
func (a *API) getShare(c *call) error {
	share, err := a.links.Share(c.ctx, c.account, idInPath(c))
	if err != nil {
		return shareError(err)
	}
	return answer(c.http, fasthttp.StatusOK, shareAnswer{true, newShareItem(share)})
}

// deleteShare answers DELETE /api/v1/shares/{id}. A token that may only read reports deletes its own shares.
func (a *API) deleteShare(c *call) error {
	share, err := a.links.Share(c.ctx, c.account, idInPath(c))
	if err == nil && share.TokenID != c.token && !schema.HasScope(c.scopes, schema.ScopeWriteLinks) {
		return errScope
	}
	if err == nil {
		err = a.links.DeleteShare(c.ctx, c.account, share.ID)
	}
	if err != nil {
		return shareError(err)
	}
	return answer(c.http, fasthttp.StatusOK, done{true})
}

// shareError is the error of a call with the ID of a share.
func shareError(err error) error {
	switch schema.ErrorCode(err) {
	case schema.CodeNotFound:
		return schema.ClientErrorf(schema.CodeNotFound, noShare)
	case schema.CodeUnauthorized: // the token was revoked a moment ago
		return auth.ErrUnauthorized
	}
	return withOutage(shareOutage, err)
}
