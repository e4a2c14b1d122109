package redirect

import (
	"bytes"
	"context"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/edge/password"
	"linkstream/edge/resolve"
	"linkstream/schema"
)

const (
	// grantCookie is the cookie that lets a visitor through who has entered the password of a link. It is sent to that
	// link only.
	grantCookie   = "linkstream_grant"
	fieldPassword = "password"
)

// otherMethod answers a request that is neither GET nor HEAD: a POST is an attempt at a link's password. It returns
// false on an event loop if a goroutine has to answer.
func (h *Handler) otherMethod(q *request) bool {
	if q.IsPost() && len(q.path) > 0 {
		if q.loop != nil {
			return false
		}
		target, err, _ := h.find(q)
		if err != nil && schema.ErrorCode(err) != schema.CodeNotFound {
			h.answerError(q, target, err)
			return true
		}
		if err == nil && hasPassword(target) {
			return h.follow(q, target, nil)
		}
	}
	h.pages.badMethod.answer(q.RequestCtx, nameless)
	q.Response.Header.Set("Allow", "GET, HEAD")
	return true
}

// hasPassword reports whether a link has a password, for which it asks unless it has expired.
func hasPassword(target resolve.Target) bool {
	_, extension := target.Extended()
	return extension.Password() != 0
}

// admit reports whether a visitor has entered the password of a link with a version, lately or by this request.
// Otherwise it answers with the page that asks for it, which is no click, or returns false for answered if a goroutine
// has to answer.
func (h *Handler) admit(q *request, target resolve.Target, version int64) (admitted, answered bool) {
	if q.IsPost() {
		return h.tryPassword(q, target), true
	}
	if grant := q.Request.Header.Cookie(grantCookie); len(grant) > 0 {
		if !h.passwords.Ready() {
			if q.loop != nil {
				return false, false
			}
			if err := h.passwords.Load(context.Background()); err != nil {
				h.passwordsAway(q, target, err)
				return false, true
			}
		}
		if h.passwords.ValidGrant(grant, target.LinkID, version, q.now) {
			return true, true
		}
	}
	h.previewed.Inc()
	h.show(q, target, &h.pages.forVisitor(q.RequestCtx).password)
	return false, true
}

// tryPassword reports whether a request has the right password, and answers it otherwise. With the right password the
// visitor also gets a grant.
func (h *Handler) tryPassword(q *request, target resolve.Target) (right bool) {
	attempt := schema.PasswordAttempt{LinkID: target.LinkID, Client: q.client,
		Password: string(q.PostArgs().Peek(fieldPassword))}
	verdict, err := h.passwords.Try(context.Background(), attempt)
	if err == nil {
		h.unchecked.Store(false)
	}
	pages := h.pages.forVisitor(q.RequestCtx)
	switch {
	case err != nil:
		h.passwordsAway(q, target, err)
	case verdict.Wait > 0:
		h.tooMany.Inc()
		h.show(q, target, &pages.waitPassword)
		q.Response.Header.Set("Retry-After", strconv.Itoa(verdict.Wait))
	case !verdict.Right:
		h.previewed.Inc()
		h.show(q, target, &pages.wrongPassword)
	default:
		h.grant(q, target.LinkID, verdict.Version)
		q.Request.Header.Del(fasthttp.HeaderReferer) // which is the page that has asked
		return true
	}
	return false
}

// cookiePath returns the path of a request as browsers compare it with cookies, or else the link's. A path behind the
// link's name is left out: the grant is good for each of them.
func cookiePath(q *request) []byte {
	path := q.URI().PathOriginal()
	if len(q.rest) > 0 {
		path = path[:len(path)-len(q.rest)-1]
	}
	if bytes.ContainsAny(path, "%;") { // a cookie's path cannot hold them
		path = append([]byte{'/'}, resolve.AsTyped(readPath(path))...)
	}
	return path
}

func (h *Handler) grant(q *request, link, version int64) {
	var cookie fasthttp.Cookie
	cookie.SetKey(grantCookie)
	cookie.SetValue(h.passwords.Grant(link, version, q.now))
	cookie.SetPathBytes(cookiePath(q))
	cookie.SetMaxAge(int(password.Life / time.Second))
	cookie.SetHTTPOnly(true)
	cookie.SetSecure(h.secure || q.IsTLS())
	cookie.SetSameSite(fasthttp.CookieSameSiteLaxMode)
	q.Response.Header.SetCookie(&cookie)
}

// passwordsAway answers while no password can be checked. It logs the first failure: visitors decide how many there
// are.
func (h *Handler) passwordsAway(q *request, target resolve.Target, err error) {
	if !h.unchecked.Swap(true) {
		h.log.Warn("passwords of links cannot be checked", "error", err)
	}
	h.answerUnavailable(q, target)
}
