package dashboard

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/api/auth"
	"linkstream/api/ratelimit"
	"linkstream/schema"
)

const (
	pathSignIn  = Root + "/sign-in"
	pathSignUp  = Root + "/sign-up"
	pathSignOut = Root + "/sign-out"
)

// What may be tried how often. An address may be that of many people. An account that somebody tries to break into is
// closed to its owner, too, until the window ends: that is the price of a limit that many addresses cannot get around.
var (
	signInByAddress   = ratelimit.AttemptLimit{Purpose: "sign in by address", PerMinute: 30, PerHour: 300}
	signInByEmail     = ratelimit.AttemptLimit{Purpose: "sign in by email", PerMinute: 10, PerHour: 100}
	signUpByAddress   = ratelimit.AttemptLimit{Purpose: "sign up by address", PerMinute: 10, PerHour: 60}
	signUpByEmail     = ratelimit.AttemptLimit{Purpose: "sign up by email", PerMinute: 10, PerHour: 20}
	passwordByAccount = ratelimit.AttemptLimit{Purpose: "change password", PerMinute: 10, PerHour: 50}
)

func (d *Dashboard) routeSignIn() {
	d.openGet(pathSignIn, d.showSignIn)
	d.openPost(pathSignIn, d.signIn)
	d.route(fasthttp.MethodPost, pathSignOut, admitSession, d.signOut)
	if d.signUp {
		d.openGet(pathSignUp, d.showSignUp)
		d.openPost(pathSignUp, d.makeAccount)
	}
}

// signInPage is the data of the sign-in and the sign-up.
type signInPage struct {
	Email, Next string
	Done        string // what has happened before
}

// signInNotices are shown where nobody is signed in, whose session could carry a notice.
var signInNotices = map[string]string{
	"ended":      "Your session had ended, so nothing was changed. Please sign in again.",
	"signed-out": "You are signed out.",
	"signed-up":  "Your account is ready, unless the email address had one already. Sign in with your password.",
}

func (d *Dashboard) showSignIn(c *call) error {
	next := c.query("next")
	if c.signedIn() {
		return c.redirect(nextPath(next))
	}
	return d.render(c, "signin", signInPage{Next: next, Done: signInNotices[c.query("notice")]})
}

// nextPath returns where to go after the sign-in: next if that is a page of ours.
func nextPath(next string) string {
	if localPath(next) {
		return next
	}
	return Root
}

// signIn answers the same, after the same time, whatever is wrong: nobody learns here which addresses have accounts.
func (d *Dashboard) signIn(c *call) error {
	page := signInPage{Email: c.form("email"), Next: c.form("next")}
	if wait, err := d.limit(c, signInByAddress, signInByEmail, page.Email); err != nil || wait > 0 {
		return d.tooMany(c, "signin", page, wait, err)
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
	if schema.ErrorCode(err) == schema.CodeUnauthorized { // the password was changed a moment ago
		return d.invalid(c, "signin", page, wrongPassword)
	}
	if err != nil {
		return err
	}
	return c.redirect(nextPath(page.Next))
}

var wrongPassword = problems{"": "The email address or the password is wrong."}

// authenticate returns the account and true if the email and the password are its own.
func (d *Dashboard) authenticate(c *call, email, password string) (account schema.Account, ok bool, err error) {
	if email, err = auth.ParseEmail(email); err == nil {
		account, err = d.DB.AccountByEmail(c.ctx, email)
	}
	if code := schema.ErrorCode(err); err != nil && code != schema.CodeNotFound && code != schema.CodeInvalid {
		return schema.Account{}, false, err
	}
	ok, err = d.passwords.Verify(c.ctx, account.PasswordHash, password)
	return account, ok, err
}

// signOut ends the session, here and in the store.
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

// makeAccount answers the same, after the same time, whether or not the address had an account. Without a mail that
// only the address's owner can read, no more can be hidden: whether the new password then opens the account tells which
// it was, which is why nobody is signed in here, and why both steps are limited.
func (d *Dashboard) makeAccount(c *call) error {
	page, password := signInPage{Email: c.form("email")}, c.secret("password")
	email, wrong := auth.ParseEmail(page.Email)
	p := problems{}
	if wrong != nil {
		p["email"] = "This is not an email address: it needs a name, an @ and a domain."
	}
	if auth.ValidatePassword(password) != nil {
		p["password"] = passwordProblem
	}
	if len(p) > 0 {
		return d.invalid(c, "signup", page, p)
	}
	if wait, err := d.limit(c, signUpByAddress, signUpByEmail, email); err != nil || wait > 0 {
		return d.tooMany(c, "signup", page, wait, err)
	}
	hash, err := d.passwords.Hash(c.ctx, password)
	if err != nil {
		return err
	}
	account := schema.Account{Email: email, PasswordHash: hash, CreatedAt: time.Now().UTC()}
	if err := d.DB.CreateAccount(c.ctx, &account); err != nil && schema.ErrorCode(err) != schema.CodeConflict {
		return err
	}
	return c.redirect(pathSignIn + "?notice=signed-up")
}

var passwordProblem = fmt.Sprintf("A password needs at least %d characters, and at most %d.",
	auth.MinPasswordLen, auth.MaxPasswordLen)

// limit counts an attempt by the client's address and, unless there were too many from there, by email. It returns for
// how long the client must wait.
func (d *Dashboard) limit(c *call, byAddress, byEmail ratelimit.AttemptLimit, email string) (time.Duration, error) {
	client := d.proxies.Client(c.peer(), &c.http.Request.Header)
	wait, err := d.attempts.Allow(c.ctx, byAddress, ratelimit.Network(client))
	if err != nil || wait > 0 {
		return wait, err
	}
	return d.attempts.Allow(c.ctx, byEmail, strings.ToLower(email))
}

// tooMany answers a form that was sent too often with its page, unless err is the reason that there is no answer.
func (d *Dashboard) tooMany(c *call, page string, data any, wait time.Duration, err error) error {
	if err != nil {
		return err
	}
	c.http.Response.Header.Set(fasthttp.HeaderRetryAfter, strconv.Itoa(int(wait.Seconds())))
	p := problems{"": "There were too many attempts. " + tryAgain(wait)}
	return d.write(c, fasthttp.StatusTooManyRequests, page, data, p)
}

// tryAgain says when.
func tryAgain(wait time.Duration) string {
	if wait <= time.Minute {
		return "Please try again in a minute."
	}
	return "Please try again in " + counted(int64((wait+time.Minute-1)/time.Minute), "minute", "minutes") + "."
}

// busy returns the page of an error that says that too many passwords are being checked.
func busy(err error) (*failure, bool) { return errBusy, errors.Is(err, auth.ErrBusy) }
