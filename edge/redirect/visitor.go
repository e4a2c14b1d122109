package redirect

import (
	"bytes"
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/edge/resolve"
	"linkstream/schema"
)

// visitor is what a redirect needs to know of a request's header fields.
type visitor struct {
	userAgent, referrer, language []byte
	head, prefetch                bool
}

var (
	purposeHeaders       = [][]byte{[]byte("Sec-Purpose"), []byte("Purpose"), []byte("X-Purpose"), []byte("X-Moz")}
	purposePrefetch      = []byte("prefetch")
	headerAcceptLanguage = []byte("Accept-Language")
)

// read borrows the bytes of a header.
func (v *visitor) read(header *fasthttp.RequestHeader) {
	v.userAgent, v.referrer = header.UserAgent(), header.Referer()
	v.language = firstLanguage(header.PeekCanonical(headerAcceptLanguage))
	v.head, v.prefetch = header.IsHead(), false
	for _, name := range purposeHeaders { // browsers load pages in advance
		v.prefetch = v.prefetch || bytes.Contains(header.PeekCanonical(name), purposePrefetch)
	}
}

// click returns the click of a visitor. It borrows the visitor's bytes, route, and network, an empty buffer.
func (v *visitor) click(network []byte, target resolve.Target, route []byte, client netip.Addr, now time.Time) schema.Click {
	return schema.Click{
		LinkID:    target.LinkID,
		AccountID: target.AccountID,
		ClickedAt: now,
		UserAgent: v.userAgent,
		Referrer:  v.referrer,
		Network:   appendNetwork(network, client),
		Language:  v.language,
		Route:     route,
	}
}

// firstLanguage returns the first language range of Accept-Language, which browsers order by preference. It borrows the header's
// bytes. Languages after it would say more about the visitor than statistics need.
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
