package dashboard

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	nethttp "net/http"
	"net/url"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/api/auth"
	"linkstream/schema"
)

// maxNoticeLen bounds the text that a notice's cookie carries, in bytes.
const maxNoticeLen = 500

// admission says whether a call may go on to its handler. If not, it has been answered, or there is an error.
type admission func(*call) (bool, error)

// admitNobody asks no store who calls: for answers that are the same for everyone.
func admitNobody(*call) (bool, error) { return true, nil }

// admitAnyone lets everyone through whose request was not sent by another site's page.
func admitAnyone(c *call) (bool, error) {
	if err := c.checkOrigin(); err != nil {
		return false, err
	}
	err := c.resume()
	if c.account.Suspended {
		c.account, c.session, c.csrf = schema.Account{}, schema.Session{}, "" // no page is open to it, but signing in is
	}
	return err == nil, err
}

// admitAccount lets those through whom admitSession does, unless their account is suspended.
func admitAccount(c *call) (bool, error) {
	ok, err := admitSession(c)
	if ok && c.account.Suspended {
		return false, errSuspended
	}
	return ok, err
}

// admitSession lets those through who are signed in, with forms of their own session only. Others are sent to sign in.
func admitSession(c *call) (bool, error) {
	if err := c.checkOrigin(); err != nil {
		return false, err
	}
	if err := c.resume(); err != nil {
		return false, err
	}
	switch {
	case !c.signedIn() && c.http.IsPost():
		return false, c.redirect(pathSignIn + "?notice=ended")
	case !c.signedIn():
		return false, c.redirect(signInFor(string(c.http.RequestURI())))
	case c.http.IsPost() && !c.ownForm():
		return false, errForged
	}
	return true, nil
}

// checkOrigin refuses what changes something and was sent by a page of another origin, by Sec-Fetch-Site or Origin.
func (c *call) checkOrigin() error {
	header := &c.http.Request.Header
	request := &nethttp.Request{
		Method: string(c.http.Method()), Host: string(header.Host()), URL: &url.URL{Path: string(c.http.Path())},
		Header: nethttp.Header{},
	}
	for _, name := range []string{"Origin", "Sec-Fetch-Site"} {
		if value := header.Peek(name); len(value) > 0 {
			request.Header.Set(name, string(value))
		}
	}
	if c.dashboard.crossOrigin.Check(request) != nil {
		return errForged
	}
	return nil
}

// resume finds the session that the request's cookie stands for, if any. Its account may be suspended.
func (c *call) resume() error {
	secret := string(c.http.Request.Header.Cookie(c.dashboard.cookieName(sessionCookie)))
	if secret == "" {
		return nil
	}
	session, account, err := c.dashboard.sessions.Resume(c.ctx, secret)
	switch {
	case schema.ErrorCode(err) == schema.CodeUnauthorized:
		return nil
	case err != nil:
		return err
	}
	c.session, c.account, c.csrf = session, account, keyed(secret, "form")
	return nil
}

// ownForm reports whether the form carries the session's token.
func (c *call) ownForm() bool { return hmac.Equal(c.http.PostArgs().Peek("csrf"), []byte(c.csrf)) }

// keyed returns a value that only those know who know the session's secret, and from which it does not follow.
func keyed(secret, purpose string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(purpose))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// signInFor returns the address of a sign-in after which the browser goes to path.
func signInFor(path string) string {
	if path == Root || !localPath(path) {
		return pathSignIn
	}
	return pathSignIn + "?next=" + url.QueryEscape(path)
}

// localPath reports whether path is one of a page of the dashboard, and leads nowhere else.
func localPath(path string) bool {
	if len(path) > 1024 || path != Root && !strings.HasPrefix(path, Root+"/") && !strings.HasPrefix(path, Root+"?") {
		return false
	}
	return !strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r == '\\' || r >= 0x7f })
}

// The cookies.
const (
	sessionCookie = "linkstream"
	noticeCookie  = "linkstream-notice"
)

// cookieName returns a cookie's name. Behind TLS it has the prefix with which browsers take it from this host only.
func (d *Dashboard) cookieName(name string) string {
	if d.secure {
		return "__Host-" + name
	}
	return name
}

// setCookie has the browser keep a cookie; with an empty value, forget it.
func (c *call) setCookie(name, value string, maxAge time.Duration) {
	cookie := fasthttp.AcquireCookie()
	defer fasthttp.ReleaseCookie(cookie)
	cookie.SetKey(c.dashboard.cookieName(name))
	cookie.SetValue(value)
	cookie.SetPath("/")
	cookie.SetMaxAge(int(maxAge.Seconds()))
	if value == "" {
		cookie.SetExpire(fasthttp.CookieExpireDelete)
	}
	cookie.SetHTTPOnly(true)
	cookie.SetSameSite(fasthttp.CookieSameSiteLaxMode)
	cookie.SetSecure(c.dashboard.secure)
	c.http.Response.Header.SetCookie(cookie)
}

// signIn begins a session of the account in this browser; one that it had ends.
func (c *call) signIn(account schema.Account) error {
	if c.signedIn() {
		if err := c.dashboard.DB.EndSession(c.ctx, c.account.ID, c.session.ID); err != nil {
			return err
		}
	}
	return c.begin(account)
}

// begin has the call go on in a new session of the account.
func (c *call) begin(account schema.Account) error {
	secret, session, err := c.dashboard.sessions.Begin(c.ctx, account, string(c.http.UserAgent()))
	if err != nil {
		return err
	}
	c.account, c.session, c.csrf = account, session, keyed(secret, "form")
	c.setCookie(sessionCookie, secret, auth.MaxSessionAge)
	return nil
}

// setNotice keeps a text for the session's next page. Its cookie is signed: nobody else puts words into our mouth.
func (c *call) setNotice(notice string) {
	if notice == "" || !c.signedIn() {
		return
	}
	if len(notice) > maxNoticeLen {
		notice = strings.ToValidUTF8(notice[:maxNoticeLen], "") + "…"
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(notice))
	c.setCookie(noticeCookie, text+"."+keyed(c.csrf, notice), time.Minute)
}

// takeNotice returns the text that setNotice has kept, once.
func (c *call) takeNotice() string {
	value := string(c.http.Request.Header.Cookie(c.dashboard.cookieName(noticeCookie)))
	if value == "" {
		return ""
	}
	c.setCookie(noticeCookie, "", 0)
	text, mac, _ := strings.Cut(value, ".")
	notice, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || !c.signedIn() || !hmac.Equal([]byte(mac), []byte(keyed(c.csrf, string(notice)))) {
		return ""
	}
	return string(notice)
}
