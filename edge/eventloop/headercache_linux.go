package eventloop

import (
	"bytes"
	"hash/maphash"

	"github.com/VictoriaMetrics/metrics"
)

// The bounds of a loop's cache of headers. It takes up to 2 KiB per header.
const (
	maxCachedHeader  = 1 << 10 // bytes of header fields
	maxCachedPath    = 64      // bytes of a path
	maxCachedQuery   = 1 << 10 // bytes of a query
	headerWays       = 4       // headers per set
	mostHeaders      = 1 << 13 // of all loops, unless each has least
	leastHeaders     = 1 << 10 // of a loop
	mostLoopsHeaders = 1 << 12 // of a loop
)

// headerCache has what the handler has learned of header fields that came more than once. fasthttp's parser judges the bytes that
// follow the request line by themselves: only the version has an influence, which is HTTP/1.1 here. So the same bytes after
// another request line of the same form have the same meaning, and end where they did. The cache belongs to a loop.
type headerCache struct {
	handler HeaderCacher // nil: nothing is cached
	seed    maphash.Seed
	size    int // of sets
	sets    []headerSet
	seen    []uint32 // by hash: a part of the hash of the fields that came last, odd, or one less if the handler refuses them
	victim  uint8
	unused  any // a value of the handler's that no header has; nil: none
	used    int // requests that were answered by it in this turn
}

// headerSet has headers whose hashes have the same remainder. Hashes are kept apart, so that a search reads one line of memory.
type headerSet struct {
	hashes  [headerWays]uint64
	headers [headerWays]cachedHeader
}

// cachedHeader is one header.
type cachedHeader struct {
	fields  []byte // all bytes after the request line
	closing bool   // the connection ends after the answer
	value   any    // the handler's
}

func newHeaderCache(handler Handler, loops int) headerCache {
	cacher, _ := handler.(HeaderCacher)
	size := leastHeaders
	for size < mostLoopsHeaders && 2*size*loops <= mostHeaders {
		size *= 2
	}
	return headerCache{handler: cacher, seed: maphash.MakeSeed(), size: size / headerWays}
}

// find returns the header of these fields, or nil, and their hash.
func (c *headerCache) find(fields []byte) (*cachedHeader, uint64) {
	hash := maphash.Bytes(c.seed, fields)
	if c.sets == nil {
		return nil, hash
	}
	set := &c.sets[hash%uint64(c.size)]
	for i, h := range set.hashes {
		if h == hash && bytes.Equal(set.headers[i].fields, fields) {
			return &set.headers[i], hash
		}
	}
	return nil, hash
}

// learn is told of fields that were parsed, as the cache does not have them. It keeps them if they came before: a flood of headers
// that come once each drives nothing out.
func (c *headerCache) learn(r *Request, fields []byte, hash uint64) {
	if c.sets == nil {
		c.sets, c.seen = make([]headerSet, c.size), make([]uint32, c.size*headerWays)
	}
	seen := &c.seen[hash%uint64(len(c.seen))]
	once := uint32(hash>>32) | 1
	refused := once - 1
	if *seen == refused {
		return
	}
	if *seen != once {
		*seen = once
		return
	}
	value := c.handler.CacheHeader(r, c.unused)
	if value == nil {
		*seen = refused
		return
	}
	set, way := &c.sets[hash%uint64(c.size)], c.victim%headerWays
	c.victim++
	h := &set.headers[way]
	c.unused, set.hashes[way] = h.value, hash
	*h = cachedHeader{append(h.fields[:0], fields...), r.Request.Header.ConnectionClose(), value}
}

// report adds what the cache has done in a turn to a counter that all loops share.
func (c *headerCache) report(cached *metrics.Counter) {
	if c.used > 0 {
		cached.Add(c.used)
		c.used = 0
	}
}

// cutRequest cuts bytes that begin with a request line of the most common form, a GET by HTTP/1.1 of a path from a small alphabet, into that
// path, the query and what follows the line. Fields are nil if the line is another one.
func cutRequest(in []byte) (path, query, fields []byte) {
	const method, version = "GET ", " HTTP/1.1\r\n"
	if len(in) < len(method)+2 || string(in[:len(method)+1]) != "GET /" {
		return nil, nil, nil
	}
	end := len(method) + 1
	for limit := min(len(in), len(method)+maxCachedPath); end < limit && pathChar[in[end]]; {
		end++
	}
	path = in[len(method):end]
	if end < len(in) && in[end] == '?' {
		end++
		begin := end
		for limit := min(len(in), begin+maxCachedQuery); end < limit && queryChar[in[end]]; {
			end++
		}
		if query = in[begin:end]; bytes.Contains(query, colonSlashSlash) { // fasthttp may take it for the end of a scheme
			return nil, nil, nil
		}
	}
	rest := in[end:]
	if len(rest) <= len(version) || len(rest) > len(version)+maxCachedHeader || string(rest[:len(version)]) != version {
		return nil, nil, nil
	}
	return path, query, rest[len(version):]
}

var colonSlashSlash = []byte("://")

// pathChar has the characters of a path that stands for itself: fasthttp neither decodes nor normalizes it.
var pathChar = func() (set [256]bool) {
	for _, c := range []byte("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-") {
		set[c] = true
	}
	return set
}()

// queryChar has the characters of a query that ends where the request line's target does: visible ASCII without the beginning of a
// fragment. fasthttp does not decode it.
var queryChar = func() (set [256]bool) {
	for c := '!'; c <= '~'; c++ {
		set[c] = c != '#'
	}
	return set
}()

// tryCached answers in if it is one request whose header fields are cached. Otherwise fields are those that the cache may learn, with
// their hash; nil if none.
func (l *loop) tryCached(in []byte) (answered, closing bool, fields []byte, hash uint64) {
	c := &l.headers
	if c.handler == nil || l.request.Resumed != nil {
		return false, false, nil, 0
	}
	path, query, fields := cutRequest(in)
	if fields == nil {
		return false, false, nil, 0
	}
	h, hash := c.find(fields)
	if h == nil {
		return false, false, fields, hash
	}
	r := &l.request
	l.clean()
	r.sent, r.awaited = false, nil
	before := len(r.out)
	if !c.handler.TryCached(r, path, query, h.value) {
		r.out, r.dirty = r.out[:before], true
		return false, false, nil, 0
	}
	c.used++
	return true, l.finish(h.closing), nil, 0
}
