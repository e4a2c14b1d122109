package dashboard

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/api/auth"
	"linkstream/api/request"
	"linkstream/schema"
	"linkstream/schema/turns"
)

const (
	// maxNoticeLen bounds the text of a notice's cookie in bytes.
	maxNoticeLen = 500
	// maxForm bounds the form of a signed-in user, maxOpenForm any other form, in bytes.
	maxForm     = 64 << 10
	maxOpenForm = 8 << 10
	maxBulkForm = 2 << 20 // of many links, or of documents
	// paceOver is the time over which an account may send Config.PagesPerSecond on average. A page that is open sends one
	// per second. A client that sends more must not slow down others.
	paceOver = 10 * time.Second
	// maxNext bounds the path to go to after the sign-in, in bytes. With its escapes it fits into a header, and into an
	// open form.
	maxNext = 4 << 10
)

// A guard reports whether a call may reach its handler. If not, it has answered the call or returns an error.
type guard func(*call) (bool, error)

// admitNobody looks up no session. It is for answers that are the same for everyone.
func admitNobody(*call) (bool, error) { return true, nil }

// admitAnyone admits every request that was not sent by a page of another site.
func admitAnyone(c *call) (bool, error) {
	if err := c.checkOrigin(); err != nil {
		return false, err
	}
	err := c.resume()
	if c.account.Suspended {
		c.account, c.session, c.csrf = schema.Account{}, schema.Session{}, "" // a suspended account may only sign in
	}
	if err == nil {
		err = c.readForm()
	}
	return err == nil, err
}

// readForm reads the form of a POST. A client that is not signed in works without a place while it sends, which may be
// slow.
func (c *call) readForm() (err error) {
	switch {
	case !c.http.IsPost():
		return nil
	case c.signedIn():
		defer c.setDeadline()
		if c.route == pathBulk || c.route == pathSite {
			c.leave, err = request.ReadLarge(c.http, maxBulkForm, c.dashboard.bodies, turns.Account(c.account.ID))
			return err
		}
		return request.ReadBody(c.http, maxForm)
	}
	defer c.setDeadline()
	return c.turn.Outside(func() error { return request.ReadBody(c.http, maxOpenForm) })
}

// admitAccount admits signed-in users whose account is not suspended.
func admitAccount(c *call) (bool, error) {
	ok, err := admitSession(c)
	if ok && c.account.Suspended {
		return false, errSuspended
	}
	return ok, err
}

// admitSession admits signed-in users; forms need the session's CSRF token. Others are redirected to the sign-in page.
func admitSession(c *call) (bool, error) {
	if err := c.checkOrigin(); err != nil {
		return false, err
	}
	if err := c.resume(); err != nil {
		return false, err
	}
	switch {
	case !c.signedIn() && c.http.IsPost():
		return false, c.redirect(c.keepTyped())
	case !c.signedIn():
		return false, c.redirect(signInFor(string(c.http.RequestURI())))
	}
	if err := c.readForm(); err != nil {
		return false, err
	}
	if c.http.IsPost() && !c.ownForm() {
		return false, errForged
	}
	return true, nil
}

// admitUpload admits signed-in users whose account is not suspended. It does not read the form, whose token the handler
// checks.
func admitUpload(c *call) (bool, error) {
	if err := c.checkOrigin(); err != nil {
		return false, err
	}
	err := c.resume()
	switch {
	case err != nil:
		return false, err
	case !c.signedIn():
		return false, c.redirect(c.signInAgain())
	case c.account.Suspended:
		return false, errSuspended
	}
	return true, nil
}

// keep lets the GET of a form's page fill in these fields as they were typed before the session ended.
func (d *Dashboard) keep(form string, fields ...string) { d.kept[form] = fields }

// keepTyped returns the path of the sign-in page for a form whose session has ended. The sign-in leads to the form's
// page, with the values of the fields to keep if there are any. The script keeps values that are too long for an
// address.
func (c *call) keepTyped() string {
	fields := c.dashboard.kept[c.route]
	if c.readForm() != nil || len(fields) == 0 {
		return c.signInAgain()
	}
	next, err := url.Parse(c.formPage())
	if err != nil {
		return c.signInAgain()
	}
	typed := next.Query()
	for _, field := range fields {
		if value := c.form(field); value != "" {
			typed.Set(field, value)
		}
	}
	next.RawQuery = typed.Encode()
	escaped := url.QueryEscape(next.String())
	if !localPath(next.String()) || len(escaped) > maxNext {
		return c.signInAgain()
	}
	return pathSignIn + "?notice=kept&next=" + escaped
}

// signInAgain returns the path of the sign-in page that leads back to the page of the form.
func (c *call) signInAgain() string {
	const ended = pathSignIn + "?notice=ended"
	page := c.formPage()
	if escaped := url.QueryEscape(page); page != Root && localPath(page) && len(escaped) <= maxNext {
		return ended + "&next=" + escaped
	}
	return ended
}

// formPage returns the path of the page that has sent the form.
func (c *call) formPage() string {
	page := string(c.http.URI().PathOriginal())
	for range c.dashboard.above[c.route] {
		page = path.Dir(page)
	}
	return c.back(page)
}

// typed returns the initial value of a form's field: the value that keepTyped has kept.
func (c *call) typed(field string) string { return cut(c.query(field), maxAsked) }

// checkOrigin refuses unsafe methods from pages of another origin, by Sec-Fetch-Site and Origin. Browsers send at
// least one of them. A client without either is not a browser, which a foreign page could make send a form.
func (c *call) checkOrigin() error {
	if c.http.IsGet() || c.http.IsHead() || c.http.IsOptions() {
		return nil
	}
	header := &c.http.Request.Header
	switch string(header.Peek("Sec-Fetch-Site")) {
	case "", "same-origin", "none":
	default:
		return errForged
	}
	if origin := header.Peek("Origin"); len(origin) > 0 && !c.dashboard.isOwn(string(origin), string(header.Host())) {
		return errForged
	}
	return nil
}

// isOwn reports whether pages of an origin are the dashboard's: the origin is -api.url's. The Host header is what a
// page of any name says that leads here (DNS rebinding), so it counts only without -api.url, and only if it is no name:
// an address or localhost.
func (d *Dashboard) isOwn(origin, host string) bool {
	from, err := schema.ParseBaseURL(origin)
	if err != nil {
		return false
	}
	if from.SameOrigin(d.url) {
		return true
	}
	to, err := schema.ParseBaseURL(from.Scheme() + "://" + host)
	return err == nil && d.unnamed && from.SameOrigin(to) && (to.Host().IsAddr() || to.Host().IsLocal())
}

// resume looks up the session of the request's cookie. Its account may be suspended.
func (c *call) resume() error {
	secret := string(c.http.Request.Header.Cookie(c.dashboard.cookieName(sessionCookie)))
	if secret == "" {
		return nil
	}
	err := c.turn.LookUp(func() error {
		c.setDeadline() // the store may take it from now on
		session, account, err := c.dashboard.sessions.Resume(c.ctx, secret)
		switch {
		case schema.ErrorCode(err) == schema.CodeUnauthorized:
			c.turn.Distrust()
			return nil
		case err != nil:
			return err
		}
		c.session, c.account, c.csrf = session, account, keyed(secret, "form")
		c.turn.Trust()
		return nil
	})
	if err != nil || !c.signedIn() {
		return err
	}
	account := c.account
	if !c.dashboard.pace.Take(turns.Account(account.ID)) {
		c.turn.Slow()
		return errTooFast
	}
	return nil
}

// ownForm reports whether the form carries the session's CSRF token.
func (c *call) ownForm() bool { return c.ownToken(c.http.PostArgs().Peek("csrf")) }

// ownToken reports whether a masked token is the session's.
func (c *call) ownToken(masked []byte) bool {
	return hmac.Equal([]byte(unmask(masked)), []byte(c.csrf))
}

// mask returns the token combined with random bytes, so that no two pages have the same text for it. Otherwise the size
// of a compressed page would reveal whether a text that the request chose, such as a search, is like the token (the
// BREACH attack).
func mask(token string) string {
	masked := make([]byte, 2*len(token))
	pad := masked[:len(token)]
	_, _ = rand.Read(pad) // never fails
	subtle.XORBytes(masked[len(token):], pad, []byte(token))
	return base64.RawURLEncoding.EncodeToString(masked)
}

// unmask returns the token that mask has combined, or "" if text is not such a combination.
func unmask(text []byte) string {
	masked, err := base64.RawURLEncoding.DecodeString(string(text))
	if err != nil || len(masked)%2 != 0 {
		return ""
	}
	half := len(masked) / 2
	token := make([]byte, half)
	subtle.XORBytes(token, masked[:half], masked[half:])
	return string(token)
}

// keyed derives a value from the session's secret by HMAC. The secret cannot be computed from it.
func keyed(secret, purpose string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(purpose))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// The cookies.
const (
	sessionCookie = "linkstream"
	browserCookie = "linkstream-browser"
	noticeCookie  = "linkstream-notice"
	// the script sets it, with this name for https, too: it is no secret, and nothing depends on it
	zoneCookie = "linkstream-zone"
)

// cookieName returns the name of a cookie. With https it has the prefix __Host-, which binds the cookie to this host.
func (d *Dashboard) cookieName(name string) string {
	if d.secure {
		return "__Host-" + name
	}
	return name
}

// setCookie sets a cookie, or deletes it if value is empty.
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

// signIn begins a session of the account in this browser and ends the previous one.
func (c *call) signIn(account schema.Account) error {
	if c.signedIn() {
		if err := c.dashboard.DB.EndSession(c.ctx, c.account.ID, c.session.ID); err != nil {
			return err
		}
	}
	if err := c.begin(account); err != nil {
		return err
	}
	c.remember()
	return nil
}

// remember makes the browser known for the account. It stays known after the session.
func (c *call) remember() { c.setCookie(browserCookie, auth.NewBrowser(c.account), auth.MaxBrowserAge) }

// begin switches the call to a new session of the account.
func (c *call) begin(account schema.Account) error {
	secret, session, err := c.dashboard.sessions.Begin(c.ctx, account, string(c.http.UserAgent()))
	if err != nil {
		return err
	}
	c.account, c.session, c.csrf = account, session, keyed(secret, "form")
	c.setCookie(sessionCookie, secret, auth.MaxSessionAge)
	return nil
}

// notice confirms an action.
type notice struct {
	Text string
	Undo *undo `json:",omitempty"`
	// The rows of a list that stay selected: those with IDs, or all.
	Chosen []int64 `json:",omitempty"`
	All    bool    `json:",omitempty"`
}

// Chose reports whether the row with an ID stays selected.
func (n notice) Chose(id int64) bool { return slices.Contains(n.Chosen, id) }

// undo is a form that undoes an action: it sends one field.
type undo struct {
	Path, Field, Value, Back string
	Label                    string // of the button; "" for Undo
	Continues                bool   // the script sends the form: the last request has undone a part
}

// setNotice stores a notice for the session's next page. The cookie is signed, so that nobody can forge notices.
func (c *call) setNotice(n notice) {
	if n.Text == "" || !c.signedIn() {
		return
	}
	if len(n.Text) > maxNoticeLen {
		n.Text = strings.ToValidUTF8(n.Text[:maxNoticeLen], "") + "…"
	}
	text, err := json.Marshal(n)
	if err != nil {
		return // not reached: a notice is text
	}
	c.setCookie(noticeCookie, base64.RawURLEncoding.EncodeToString(text)+"."+keyed(c.csrf, string(text)), time.Minute)
}

// takeNotice returns the notice of setNotice and deletes it.
func (c *call) takeNotice() (n notice) {
	value := string(c.http.Request.Header.Cookie(c.dashboard.cookieName(noticeCookie)))
	if value == "" {
		return notice{}
	}
	c.setCookie(noticeCookie, "", 0)
	encoded, mac, _ := strings.Cut(value, ".")
	text, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || !c.signedIn() || !hmac.Equal([]byte(mac), []byte(keyed(c.csrf, string(text)))) {
		return notice{}
	}
	if json.Unmarshal(text, &n) != nil {
		return notice{} // of another release
	}
	return n
}
