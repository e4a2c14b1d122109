package dashboard

import (
	"fmt"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/api/auth"
	"linkstream/api/clickreport"
	"linkstream/api/ratelimit"
	"linkstream/api/request"
	"linkstream/schema"
)

const pathSignUp = Root + "/sign-up"

func (d *Dashboard) routeSignIn() {
	d.openGet(pathSignIn, request.Constant, d.showSignIn)
	d.openPost(pathSignIn, request.Passwords, d.signIn)
	d.route(fasthttp.MethodPost, Root+"/sign-out", admitSession, request.Constant, d.signOut)
	if d.signUp {
		d.openGet(pathSignUp, request.Constant, d.showSignUp)
		d.openPost(pathSignUp, request.Passwords, d.makeAccount)
	}
}

// signInPage is the data of the sign-in and sign-up pages.
type signInPage struct {
	Email, Next string
	Done        string // notice about what happened before
}

// signInNotices are shown on pages without a session, which cannot carry a notice.
var signInNotices = map[string]string{
	"ended":      "Your session ended, and nothing was changed. Please sign in again.",
	"kept":       "Your session ended. What you typed is kept: sign in again to continue.",
	"signed-out": "You are signed out.",
}

func (d *Dashboard) showSignIn(c *call) error {
	next := c.query("next")
	if c.signedIn() {
		return c.redirect(nextPath(next))
	}
	return d.render(c, "signin", signInPage{Next: next, Done: signInNotices[c.query("notice")]})
}

// nextPath returns the path to go to after the sign-in: next if it is a page of the dashboard.
func nextPath(next string) string {
	if localPath(next) {
		return next
	}
	return Root
}

// signIn gives the same answer after the same time whatever is wrong, so that it does not reveal which accounts exist.
func (d *Dashboard) signIn(c *call) error {
	page := signInPage{Email: c.form("email"), Next: c.form("next")}
	attempts := d.byClient(c, signInByAddress, signInBySite, signInByEmail.By(strings.ToLower(page.Email)))
	if browser, known, err := d.knownBrowser(c, page.Email); err != nil {
		return err
	} else if known {
		attempts = []ratelimit.Attempt{signInByBrowser.By(browser)}
	}
	if wait, err := d.limit(c, attempts); err != nil || wait > 0 {
		return d.tooMany(c, "signin", page, "Too many attempts.", wait, err)
	}
	account, ok, err := d.authenticate(c, page.Email, c.secret("password"))
	switch {
	case err != nil:
		return err
	case !ok:
		return d.invalid(c, "signin", page, wrongPassword)
	case account.Suspended:
		return errSuspended
	}
	err = c.signIn(account)
	if schema.ErrorCode(err) == schema.CodeUnauthorized { // the password has just been changed
		return d.invalid(c, "signin", page, wrongPassword)
	}
	if err != nil {
		return err
	}
	return c.redirect(nextPath(page.Next))
}

var wrongPassword = problems{"": "The email address or password is wrong."}

// authenticate returns the account and true if email and password match. It works without a place, because passwords
// have a bound of their own.
func (d *Dashboard) authenticate(c *call, email, password string) (schema.Account, bool, error) {
	account, err := d.findAccount(c, email)
	if err != nil {
		return schema.Account{}, false, err
	}
	c.turn.End()
	ok, err := d.passwords.Verify(c.ctx, c.site(), account.PasswordHash, password)
	return account, ok, err
}

// findAccount returns the account with that email, or the zero value for an unknown email.
func (d *Dashboard) findAccount(c *call, email string) (account schema.Account, err error) {
	if email, err = auth.ParseEmail(email); err == nil {
		account, err = d.DB.AccountByEmail(c.ctx, email)
	}
	if code := schema.ErrorCode(err); code == schema.CodeNotFound || code == schema.CodeInvalid {
		return schema.Account{}, nil
	}
	return account, err
}

// knownBrowser returns the name of the browser if it has signed in to the account with that email before.
func (d *Dashboard) knownBrowser(c *call, email string) (name string, known bool, err error) {
	secret := string(c.http.Request.Header.Cookie(d.cookieName(browserCookie)))
	if !auth.IsBrowser(secret) {
		return "", false, nil
	}
	account, err := d.findAccount(c, email)
	if err != nil {
		return "", false, err
	}
	name, known = auth.KnownBrowser(account, secret)
	return name, known, nil
}

// signOut ends the session in the browser and in the store.
func (d *Dashboard) signOut(c *call) error {
	if err := d.DB.EndSession(c.ctx, c.account.ID, c.session.ID); err != nil {
		return err
	}
	c.setCookie(sessionCookie, "", 0)
	return c.redirect(pathSignIn + "?notice=signed-out")
}

func (d *Dashboard) showSignUp(c *call) error {
	if c.signedIn() {
		return c.redirect(Root)
	}
	return d.render(c, "signup", signInPage{})
}

// makeAccount creates an account and signs in to it. If the address has an account, it says so: since no mail is sent,
// a sign-in with the new password would reveal the same. Attempts are limited.
func (d *Dashboard) makeAccount(c *call) error {
	page, password := signInPage{Email: c.form("email")}, c.secret("password")
	email, wrong := auth.ParseEmail(page.Email)
	p := problems{}
	if wrong != nil {
		p["email"] = "Please enter an email address, such as you@example.com."
	}
	if auth.ValidatePassword(password) != nil {
		p["password"] = passwordProblem
	}
	if len(p) > 0 {
		return d.invalid(c, "signup", page, p)
	}
	attempts := d.byClient(c, signUpByAddress, signUpBySite, signUpByEmail.By(strings.ToLower(email)))
	if wait, err := d.limit(c, attempts); err != nil || wait > 0 {
		return d.tooMany(c, "signup", page, "Too many attempts.", wait, err)
	}
	c.turn.End()
	hash, err := d.passwords.Hash(c.ctx, c.site(), password)
	if err != nil {
		return err
	}
	account := schema.Account{Email: email, PasswordHash: hash, CreatedAt: time.Now().UTC()}
	if _, ok := clickreport.FindZone(c.browserZone()); ok {
		account.TimeZone = c.browserZone()
	}
	err = d.DB.CreateAccount(c.ctx, &account)
	if schema.ErrorCode(err) == schema.CodeConflict {
		return d.invalid(c, "signup", page, problems{"email": "This email address has an account. Sign in instead."})
	}
	if err != nil {
		return err
	}
	if err := c.signIn(account); err != nil {
		return err
	}
	return c.seeOther(Root, "Your account is ready.")
}

var passwordProblem = fmt.Sprintf("A password needs at least %d characters, and at most %d.",
	auth.MinPasswordLen, auth.MaxPasswordLen)

// limit counts attempts. It returns how long the client must wait, 0 if it may go on. The call works without a place
// while the store counts.
func (d *Dashboard) limit(c *call, attempts []ratelimit.Attempt) (wait time.Duration, err error) {
	err = c.turn.Outside(func() (err error) {
		wait, err = d.attempts.Allow(c.ctx, attempts...)
		return err
	})
	return wait, err
}
