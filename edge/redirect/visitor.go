package redirect

import (
	"bytes"
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/edge/eventloop"
	"linkstream/edge/resolve"
	"linkstream/schema"
)

// visitor is what a redirect needs to know of a request's header fields.
type visitor struct {
	host                          resolve.Host // set if it is remembered
	userAgent, referrer, language []byte
	head, prefetch                bool

	memory []byte // that all of these refer to, if it is remembered
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

// remember makes what v has borrowed, and host, v's own.
func (v *visitor) remember(cached *resolve.Cached, host []byte) {
	v.userAgent = v.userAgent[:min(len(v.userAgent), schema.MaxUserAgentLen)]
	v.referrer = v.referrer[:min(len(v.referrer), schema.MaxReferrerLen)]
	v.memory = v.memory[:0]
	for _, b := range [][]byte{v.userAgent, v.referrer, v.language, host} {
		v.memory = append(v.memory, b...)
	}
	rest := v.memory
	own := func(b []byte) (copied []byte) {
		copied, rest = rest[:len(b):len(b)], rest[len(b):]
		return copied
	}
	v.userAgent, v.referrer, v.language = own(v.userAgent), own(v.referrer), own(v.language)
	v.host = cached.Host(own(host))
}

// click returns the click of a visitor. It borrows the visitor's bytes and those of network, an empty buffer.
func (v *visitor) click(network []byte, target resolve.Target, client netip.Addr, now time.Time) schema.Click {
	return schema.Click{
		LinkID:    target.LinkID,
		AccountID: target.AccountID,
		ClickedAt: now,
		UserAgent: v.userAgent,
		Referrer:  v.referrer,
		Network:   appendNetwork(network, client),
		Language:  v.language,
	}
}

// privateHeaders are the fields of visitors that are not remembered: they have secrets, or addresses.
var privateHeaders = [][]byte{[]byte("Cookie"), []byte("Authorization"), []byte("Proxy-Authorization"), []byte("X-Forwarded-For"),
	[]byte("X-Real-Ip"), []byte("Forwarded")}

// CacheHeader remembers a visitor for requests with the same header fields: see eventloop.HeaderCacher.
func (i *instant) CacheHeader(r *eventloop.Request, unused any) (header any) {
	var answered bool // the request is, already
	defer i.recover(r.RequestCtx, &answered)
	for _, name := range privateHeaders {
		if len(r.Request.Header.PeekCanonical(name)) > 0 {
			return nil
		}
	}
	v, ok := unused.(*visitor)
	if !ok {
		v = new(visitor)
	}
	v.read(&r.Request.Header)
	v.remember(i.cached, r.Host())
	return v
}

// TryCached answers a visitor whose header fields are remembered, if the link is in memory.
func (i *instant) TryCached(r *eventloop.Request, path, query []byte, header any) (answered bool) {
	defer i.recover(r.RequestCtx, &answered)
	peer, _ := netip.AddrFromSlice(r.RemoteIP())
	client := peer.Unmap()
	if isFixed(path) || i.proxies.Contain(client) { // whose fields say who the client is
		return false
	}
	v := header.(*visitor)
	target, err := i.cached.ResolveOn(v.host, path[1:], r.Now)
	switch {
	case err == resolve.ErrNotCached || err == resolve.ErrOutdated:
		return false
	case err != nil:
		i.answerError(r.RequestCtx, err, client, r.Now)
	case len(target.Location) == 0:
		i.answerGone(r.RequestCtx, target.Stop)
	case !i.record(r, v, target, client):
		return false
	default:
		i.send(r, target, query)
	}
	i.time(r.Now)
	return true
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
