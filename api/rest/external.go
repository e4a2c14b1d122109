package rest

import (
	"cmp"

	"github.com/valyala/fasthttp"

	"linkstream/api/links"
	"linkstream/schema"
)

// putLink answers PUT /api/v1/links/{hash}, where {hash} is an external ID after "ext:". A repeated request finds the
// link as it makes it, so it needs no Idempotency-Key.
func (a *API) putLink(c *call) error {
	name, _, err := linkInPath(c)
	if err != nil {
		return err
	}
	id, external, err := links.ExternalID(name)
	if !external {
		return invalidField(fieldHash, "PUT names a link by its external ID, after ext: in the path.")
	}
	if err != nil {
		return err
	}
	body, err := decodeBody(c)
	if err != nil {
		return err
	}
	req := links.Request{AccountID: c.account}
	body.setRequest(&req)
	if req.ExternalID != "" && req.ExternalID != id {
		body.reject(links.FieldExternalID, "The external ID must be the one in the path.")
		req.Malformed = body.malformed
	}
	req.ExternalID = id
	link, created, err := a.shortener.Put(c.ctx, req, func(link *schema.Link) (unchanged bool, err error) {
		if link != nil {
			return precondition(c.http, *link)
		}
		if match, err := tagsIn(c.http, fasthttp.HeaderIfMatch); match != nil || err != nil {
			return false, cmp.Or(err, error(errChanged))
		}
		_, err = tagsIn(c.http, fasthttp.HeaderIfNoneMatch)
		return false, err
	})
	switch {
	case err != nil:
		return withOutage("Links cannot be changed", ifChanged(c.http.Request.Header.Peek("If-Match") != nil, err))
	case created:
		return a.answerLinkAs(c, fasthttp.StatusCreated, link)
	}
	return a.answerLink(c, link)
}
