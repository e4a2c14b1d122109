package redirect

import (
	"bytes"

	"linkstream/edge/resolve"
)

// behind answers a request for a path behind a link's name. It returns false if a goroutine has to answer.
func (h *Handler) behind(q *request, target resolve.Target) bool {
	switch {
	case !q.cutRest(&target, q.path):
		h.answerNoLink(q, target)
		return true
	case len(q.rest) > resolve.MaxLocation:
		h.show(q, target, &h.pages.pathTooLong)
		return true
	}
	h.resolver.Settle(&target, q.now)
	return h.follow(q, target, nil)
}

// cutRest sets the path behind the name of a target, to which a path, the first part of q.path, leads. It reports
// whether there can be such a path.
func (q *request) cutRest(target *resolve.Target, path []byte) bool {
	raw := bytes.TrimPrefix(q.URI().PathOriginal(), []byte("/"))
	raw = raw[:encodedLen(raw, len(path))]
	q.rest = raw[encodedLen(raw, target.NameLen()+1):]
	return resolve.ValidRest(q.rest)
}

// encodedLen returns the length of n bytes of what readPath returns, in the path as it was sent.
func encodedLen(raw []byte, n int) (length int) {
	for ; n > 0 && length < len(raw); n-- {
		c, size := resolve.DecodeByte(raw[length:])
		if c == '/' && size > 1 {
			size = 1 // which stays encoded
		}
		length += size
	}
	return length
}

// place puts the path behind the link's name into a target's location, as far as the link says so. isURL says that the
// location is the link's own URL. It returns the buffer that the location then is in, which has to be given back once
// the request is answered, or nil if the location stays. If it would be too long, place answers and returns false.
func (h *Handler) place(q *request, target *resolve.Target, isURL bool) (buffer *forwardBuffer, ok bool) {
	if !target.HasPlace(q.rest, isURL) {
		return nil, true
	}
	buffer = h.forwarded.Get().(*forwardBuffer)
	location, ok := target.AppendRest(buffer[:0], target.Location, q.rest, isURL)
	if !ok {
		h.forwarded.Put(buffer)
		h.show(q, *target, &h.pages.pathTooLong)
		return nil, false
	}
	target.Location = location
	return buffer, true
}

// appendDecoded appends what there is room for of a path as it was sent, decoded once.
func appendDecoded(dst, rest []byte) []byte {
	for i := 0; i < len(rest) && len(dst) < cap(dst); {
		c, size := resolve.DecodeByte(rest[i:])
		dst = append(dst, c)
		i += size
	}
	return dst
}
