package redirect

import (
	"bytes"
	"net/netip"
	"slices"
	"unicode"

	"github.com/valyala/fasthttp"

	"linkstream/edge/resolve"
	"linkstream/schema"
)

// visitor has the values of a request's header fields that a redirect needs.
type visitor struct {
	userAgent, referrer, language []byte
	head, speculative             bool
}

var headerAcceptLanguage = []byte("Accept-Language")

// read borrows the bytes of a header.
func (v *visitor) read(header *fasthttp.RequestHeader) {
	v.userAgent, v.referrer = header.UserAgent(), header.Referer()
	v.language = firstLanguage(header.PeekCanonical(headerAcceptLanguage))
	v.head, v.speculative = header.IsHead(), false
	for field, value := range header.All() { // one walk costs less than a look-up of each field
		switch string(field) {
		case "Sec-Purpose", "Purpose", "X-Purpose", "Sec-Fetch-Purpose", "X-Moz":
			v.speculative = v.speculative || isSpeculative(value)
		}
	}
}

var purposes = [][]byte{[]byte("prefetch"), []byte("prerender"), []byte("preview"), []byte("preload"),
	[]byte("instant")}

// isSpeculative reports whether a header field says that the client loads a page in advance, and may never show it.
// Sec-Purpose (Fetch Standard, section 3.8) has tokens such as prefetch;prerender. Older browsers and apps send other
// fields: Chrome and Safari Purpose, Safari, Opera and Facebook X-Purpose, Firefox X-Moz.
func isSpeculative(value []byte) bool {
	for word := range bytes.FieldsFuncSeq(value, func(r rune) bool { return !unicode.IsLetter(r) }) {
		if slices.ContainsFunc(purposes, func(p []byte) bool { return bytes.EqualFold(word, p) }) {
			return true
		}
	}
	return false
}

// clickBuffer holds what a click does not borrow.
type clickBuffer struct {
	network  [schema.MaxNetworkLen]byte
	campaign [schema.MaxCampaignLen]byte
	path     [schema.MaxPathLen]byte
}

// click returns the click of a visitor. It borrows the visitor's bytes, the buffer, and route.
func (h *Handler) click(b *clickBuffer, v *visitor, q *request, target resolve.Target, route []byte) schema.Click {
	var forwarded []byte
	if target.Forward {
		forwarded = q.URI().QueryString()
	}
	return schema.Click{
		LinkID:    target.LinkID,
		AccountID: target.AccountID,
		ClickedAt: q.now,
		UserAgent: v.userAgent,
		Referrer:  v.referrer,
		Network:   appendNetwork(b.network[:0], q.client),
		Language:  v.language,
		Route:     route,
		Campaign:  appendCampaign(b.campaign[:0], target.Location, forwarded),
		Path:      appendDecoded(b.path[:0], q.rest),
		Visitor:   h.visitors.Hash(q.now, target.AccountID, q.client, v.userAgent),
	}
}

// firstLanguage returns the first language range of Accept-Language, which browsers order by preference. It borrows the
// header's bytes. Languages after it would say more about the visitor than statistics need.
func firstLanguage(header []byte) []byte {
	header = bytes.TrimLeft(header[:min(len(header), 2*schema.MaxLanguageLen)], " \t")
	if end := bytes.IndexAny(header, ",; \t"); end >= 0 {
		header = header[:end]
	}
	return header[:min(len(header), schema.MaxLanguageLen)]
}

// appendNetwork appends the network of a client's address, which is all that a click keeps of it: the /24 of an IPv4
// address, the /48 of an IPv6 address, nothing if the address is unknown.
func appendNetwork(dst []byte, client netip.Addr) []byte {
	switch {
	case !client.IsValid() || client.IsUnspecified():
		return dst
	case client.Is4():
		a := client.As4()
		return append(dst, a[:3]...)
	default:
		a := client.As16()
		return append(dst, a[:6]...)
	}
}
