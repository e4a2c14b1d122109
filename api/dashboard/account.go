package dashboard

import (
	"strconv"
	"time"

	"linkstream/api/auth"
	"linkstream/api/clickreport"
	"linkstream/api/request"
	"linkstream/schema"
	"linkstream/schema/enrich"
)

func (d *Dashboard) routeAccount() {
	d.get(pathAccount, request.Constant, d.showAccount)
	d.post(pathAccount+"/password", request.Passwords, d.changePassword)
	d.post(pathAccount+"/profile", request.Constant, d.changeProfile)
	d.post(pathAccount+"/sessions/end", request.Constant, d.endSession)
	d.post(pathAccount+"/sessions/end-others", request.Constant, d.endOtherSessions)
}

// fieldZone is the field of the account's time zone.
const fieldZone = "time_zone"

// accountPage is the data of the account page.
type accountPage struct {
	Account  schema.Account
	Profile  schema.Profile // as the form has it
	Sessions []sessionItem
}

// sessionItem is a session as shown to its owner.
type sessionItem struct {
	ID        int64
	Browser   string
	CreatedAt time.Time
	SeenAt    time.Time
	Current   bool
}

func (d *Dashboard) accountPage(c *call) (accountPage, error) {
	sessions, err := d.DB.Sessions(c.ctx, c.account.ID, time.Now().UTC())
	if err != nil {
		return accountPage{}, err
	}
	page := accountPage{Account: c.account, Profile: c.account.Profile}
	for _, s := range sessions {
		item := sessionItem{s.ID, browserName(s.UserAgent), s.CreatedAt, s.SeenAt, s.ID == c.session.ID}
		page.Sessions = append(page.Sessions, item)
	}
	return page, nil
}

func (d *Dashboard) showAccount(c *call) error {
	page, err := d.accountPage(c)
	if err != nil {
		return err
	}
	return d.render(c, "account", page)
}

// changePassword also ends every session except a new one of this browser. A thief of the old password or of a
// cookie is signed out.
func (d *Dashboard) changePassword(c *call) error {
	wait, err := d.attempts.Allow(c.ctx, passwordByAccount.By(strconv.FormatInt(c.account.ID, 10)))
	if err != nil {
		return err
	}
	if wait > 0 {
		page, err := d.accountPage(c)
		return d.tooMany(c, "account", page, "Too many attempts.", wait, err)
	}
	password := c.secret("new")
	p := problems{}
	if ok, err := d.passwords.Verify(c.ctx, c.site(), c.account.PasswordHash, c.secret("current")); err != nil {
		return err
	} else if !ok {
		p["current"] = "That is not your current password."
	}
	if auth.ValidatePassword(password) != nil {
		p["new"] = passwordProblem
	} else if password != c.secret("again") {
		p["again"] = "The passwords do not match."
	}
	if len(p) > 0 {
		page, err := d.accountPage(c)
		if err != nil {
			return err
		}
		return d.invalid(c, "account", page, p)
	}
	hash, err := d.passwords.Hash(c.ctx, c.site(), password)
	if err != nil {
		return err
	}
	err = c.begin(c.account)
	if schema.ErrorCode(err) == schema.CodeUnauthorized { // another session has just changed the password
		return c.redirect(pathSignIn + "?notice=ended")
	}
	if err != nil {
		return err
	}
	if err := d.DB.SetPassword(c.ctx, c.account.ID, hash, c.session.ID); err != nil {
		return err
	}
	c.account.PasswordHash = hash
	c.remember()
	return c.seeOther(pathAccount, "Your password was changed, and all other sessions were signed out.")
}

func (d *Dashboard) endSession(c *call) error {
	id := c.formID("session")
	if id == c.session.ID {
		return d.signOut(c)
	}
	if err := d.DB.EndSession(c.ctx, c.account.ID, id); err != nil {
		return err
	}
	return c.seeOther(pathAccount, "The session was signed out.")
}

func (d *Dashboard) endOtherSessions(c *call) error {
	sessions, err := d.DB.Sessions(c.ctx, c.account.ID, time.Now().UTC())
	if err != nil {
		return err
	}
	for _, s := range sessions {
		if s.ID == c.session.ID {
			continue
		}
		if err := d.DB.EndSession(c.ctx, c.account.ID, s.ID); err != nil {
			return err
		}
	}
	return c.seeOther(pathAccount, "All other sessions were signed out.")
}

// browserName returns a short description of the browser that sent a User-Agent header.
func browserName(userAgent string) string {
	agent := enrich.ParseAgent(userAgent)
	name := agent.Browser
	if name == enrich.OtherBrowser {
		name = "Unknown browser"
	}
	if agent.OS != schema.OtherName {
		name += " on " + agent.OS
	}
	return name
}

// changeProfile sets the account's profile. Without a time zone, the browser's counts.
func (d *Dashboard) changeProfile(c *call) error {
	profile, p := schema.Profile{TimeZone: c.form(fieldZone)}, problems{}
	if _, ok := clickreport.FindZone(profile.TimeZone); profile.TimeZone != "" && !ok {
		p[fieldZone] = "Enter a time zone such as Europe/Berlin or America/New_York."
		profile.TimeZone = cut(profile.TimeZone, maxAsked)
	}
	if len(p) > 0 {
		page, err := d.accountPage(c)
		if err != nil {
			return err
		}
		page.Profile = profile
		return d.invalid(c, "account", page, p)
	}
	if err := d.DB.SetProfile(c.ctx, c.account.ID, profile); err != nil {
		return err
	}
	c.account.Profile, c.location = profile, nil
	return c.seeOther(pathAccount, "Your time zone was saved. Days and times are in "+c.zone().String()+".")
}
