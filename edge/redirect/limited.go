package redirect

import (
	"linkstream/edge/limit"
	"linkstream/edge/resolve"
)

// limited answers a request for a link with a limit of clicks. A visitor is redirected only after the click is
// recorded. It returns false if a goroutine has to answer.
func (h *Handler) limited(q *request, target resolve.Target, route []byte, most int64) bool {
	var v visitor
	v.read(&q.Request.Header)
	uncounted := h.uncounted(&v)
	ticket, verdict := h.take(q, target.LinkID, most, uncounted == nil)
	switch {
	case verdict == limit.Unknown:
		return false
	case verdict == limit.UsedUp:
		return h.usedUp(q, target)
	case verdict != limit.Open:
		h.answerUnavailable(q, target)
		return true
	case uncounted != nil:
		uncounted.Inc()
	default:
		var buffer clickBuffer
		click := h.click(&buffer, &v, q, target, route)
		click.Limited = true
		if !h.append(q, &click) {
			ticket.GiveBack()
			if q.loop == nil {
				h.answerUnavailable(q, target)
			}
			return q.loop == nil
		}
		ticket.Recorded()
	}
	h.redirected.Inc()
	h.redirect(q, target)
	return true
}

// take takes a click of a link, or only asks whether one is left if the visit does not count. limit.Unknown if a
// goroutine has to ask the store.
func (h *Handler) take(q *request, link, most int64, counts bool) (limit.Ticket, limit.Verdict) {
	ticket, verdict := h.limits.Take(link, most, counts)
	if verdict == limit.Unknown && q.loop == nil {
		return h.limits.Await(link, most, counts)
	}
	return ticket, verdict
}

// usedUp answers a request for a link whose limit is used up, as if it had expired.
func (h *Handler) usedUp(q *request, target resolve.Target) bool {
	h.resolver.Expire(&target)
	return h.follow(q, target, nil)
}
