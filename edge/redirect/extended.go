package redirect

import (
	"bytes"
	"net/netip"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/valyala/fasthttp"

	"linkstream/edge/limit"
	"linkstream/edge/resolve"
	"linkstream/schema"
	"linkstream/schema/enrich"
)

// extended answers a request for a link with a behaviour, or for a path behind the name of any link, in this order: a
// link whose limit is used up leads where expired ones do; a visitor without the link's password is asked for it; a
// program that draws a preview gets the card; else the first rule that matches, a variant or the link's URL says where
// the visitor is sent. It returns false if a goroutine has to answer.
func (h *Handler) extended(q *request, target resolve.Target) bool {
	if target.Stop == resolve.Behind {
		return h.behind(q, target)
	}
	location, extension := target.Extended()
	v := h.visits.Get().(*visit)
	defer h.visits.Put(v)
	v.begin(q, target.LinkID)
	defer v.end()
	most, version := extension.Limit(), extension.Password()
	drawsCard := extension.HasCard() && v.Agent().DrawsPreviews
	isBot := drawsCard || most > 0 && v.Agent().Device == schema.Bot
	to, route := extension.Route(v)
	if target.Location = to; len(to) == 0 {
		target.Location = location
	}
	if h.resolver.Blocks(&target) {
		target.Stop = resolve.Unsafe
		h.answerGone(q, target)
		return true
	}
	switch buffer, ok := h.place(q, &target, len(to) == 0); {
	case !ok:
		return true
	case buffer != nil:
		defer h.forwarded.Put(buffer) // the answer has a copy
	}
	if most > 0 && (isBot || version != 0) { // otherwise limited finds it out
		switch _, verdict := h.take(q, target.LinkID, most, false); verdict {
		case limit.Unknown:
			return false
		case limit.UsedUp:
			return h.usedUp(q, target)
		case limit.Unavailable:
			h.answerUnavailable(q, target)
			return true
		}
	}
	if version != 0 {
		if admitted, answered := h.admit(q, target, version); !admitted {
			return answered
		}
	}
	switch {
	case drawsCard:
		if !h.record(q, target, route, h.previewed) {
			return false
		}
		h.showCard(q, target, extension.Card())
	case isBot: // spends nothing
		return h.preview(q, q.path)
	case most > 0:
		return h.limited(q, target, route, most)
	case !h.record(q, target, route, h.redirected):
		return false
	default:
		h.redirect(q, target)
	}
	return true
}

// visit finds the facts about a visitor that the conditions of a link's rules ask for: each when it is asked for first,
// in the same way as for reports.
type visit struct {
	enricher *enrich.Enricher

	ctx       *fasthttp.RequestCtx
	client    netip.Addr
	now       time.Time
	link      int64
	userAgent []byte

	agent      enrich.Agent
	hasAgent   bool
	country    string
	hasCountry bool
}

func (v *visit) begin(q *request, link int64) {
	v.ctx, v.client, v.now, v.link, v.userAgent = q.RequestCtx, q.client, q.now, link, q.UserAgent()
	v.hasAgent, v.hasCountry = false, false
}

// end gives back what the visit has borrowed.
func (v *visit) end() { v.ctx, v.userAgent = nil, nil }

// Agent implements resolve.Visitor.
func (v *visit) Agent() enrich.Agent {
	if !v.hasAgent {
		v.agent, v.hasAgent = v.enricher.Agent(v.userAgent), true
	}
	return v.agent
}

// Country implements resolve.Visitor.
func (v *visit) Country() string {
	if !v.hasCountry {
		var network [schema.MaxNetworkLen]byte
		v.country, v.hasCountry = v.enricher.Country(appendNetwork(network[:0], v.client)), true
	}
	return v.country
}

// Language implements resolve.Visitor.
func (v *visit) Language() []byte {
	return firstLanguage(v.ctx.Request.Header.PeekCanonical(headerAcceptLanguage))
}

var anyValue = []byte(resolve.AnyValue)

// Has implements resolve.Visitor.
func (v *visit) Has(parameter, value []byte) bool {
	for name, given := range v.ctx.QueryArgs().All() {
		if bytes.Equal(name, parameter) && (bytes.Equal(value, anyValue) || bytes.Equal(given, value)) {
			return true
		}
	}
	return false
}

// Unix implements resolve.Visitor.
func (v *visit) Unix() int64 { return v.now.Unix() }

// Hash implements resolve.Visitor. A visitor is an address and a User-Agent header. The hash has no secret, so that all
// edges agree on it, today and after a restart: a visitor may find out how to get another variant.
func (v *visit) Hash() uint64 {
	var digest xxhash.Digest
	digest.ResetWithSeed(uint64(v.link))
	if v.client.IsValid() {
		address := v.client.As16()
		_, _ = digest.Write(address[:])
	}
	_, _ = digest.Write(v.userAgent)
	return digest.Sum64()
}
