package dashboard

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/valyala/fasthttp"

	"linkstream/api/clickreport"
	"linkstream/api/reads"
	"linkstream/api/request"
	"linkstream/api/sharing"
	"linkstream/schema"
	"linkstream/schema/turns"
)

// This file shows shared reports to readers without an account. Readers do not slow down the owner: their requests have
// limits of their own, their reads of the stores take turns of their own, and a page is kept for a while, however many
// readers it has.

const (
	maxSharedName = 1000 // bytes of a field of the query
	sharedCookie  = "linkstream-shared"
)

// Run returns when ctx is done and no page is being made in the background any more.
func (d *Dashboard) Run(ctx context.Context) { d.readers.pages.Run(ctx) }

func (d *Dashboard) routeShared() {
	d.route(fasthttp.MethodGet, pathShared, admitReader, request.Reads, d.showShared)
	d.route(fasthttp.MethodPost, pathShared, admitReader, request.Passwords, d.unlockShared)
}

var errReaders = &failure{fasthttp.StatusTooManyRequests, "Too many requests",
	"This report, or this address, asks for pages too often. Please try again in a few seconds."}

// errNotShared does not say whether the report was ever shared.
var errNotShared = &failure{fasthttp.StatusNotFound, "This report is not shared",
	"Its link may have expired, its owner may have stopped sharing it, or the address is misspelled."}

// admitReader admits requests with the secret of a share. No session is looked up, and forms need no token: a reader
// has nothing that another site could want to use. Browsers send forms of these pages with "Origin: null".
func admitReader(c *call) (bool, error) {
	d, secret := c.dashboard, c.pathValue("secret")
	c.http.Response.Header.Set("Referrer-Policy", "no-referrer")
	if !d.readers.byNetwork.Take(c.site()) || !d.readers.byShare.Take(turns.Credential(sharing.Credential(secret))) {
		return false, errReaders
	}
	err := c.turn.LookUp(func() error {
		c.setDeadline()
		share, owner, err := d.Shares.Open(c.ctx, secret)
		switch schema.ErrorCode(err) {
		case "":
			c.turn.TrustAs(turns.Readers(owner.ID))
			c.readAs(share, owner)
		case schema.CodeNotFound:
			c.turn.Distrust()
		}
		return err
	})
	if schema.ErrorCode(err) == schema.CodeNotFound {
		return false, errNotShared
	}
	if err == nil {
		err = c.readForm()
	}
	return err == nil, err
}

// readAs lets a call read a share's report. The call is not signed in.
func (c *call) readAs(share schema.Share, owner schema.Account) {
	c.share, c.account, c.location = &share, owner, time.UTC
	for _, name := range []string{share.TimeZone, owner.TimeZone} {
		if zone, found := clickreport.FindZone(name); found {
			c.location = zone
		}
	}
}

// showShared shows a shared report, or asks for its password. Making the page has bounds of its own, so the call works
// without a place.
func (d *Dashboard) showShared(c *call) error {
	if c.share.PasswordHash != "" &&
		!sharing.Granted(*c.share, string(c.http.Request.Header.Cookie(d.sharedCookieName()))) {
		return d.render(c, "unlock", nil)
	}
	c.turn.End()
	if c.share.PasswordHash != "" && c.http.QueryArgs().Has(fieldWall) { // nobody is there to enter it again
		c.grant(string(c.http.URI().PathOriginal()), sharing.NewGrant(*c.share))
	}
	key := sharedKey{c.share.ID, c.sharedQuery()}
	path, share, owner := string(c.http.URI().PathOriginal()), *c.share, c.account
	judge := func(reads.Result[sharedPage]) reads.Use { return reads.Old }
	of, network := turns.Readers(owner.ID), c.site()
	page, err := d.readers.pages.Of(c.ctx, of, key, judge, func(ctx context.Context) (sharedPage, error) {
		leave, err := d.readers.take(ctx, of, turns.Item(share.ID), network)
		if err != nil {
			return sharedPage{}, err
		}
		defer leave()
		return d.makeShared(reads.As(ctx, of), share, owner, path+"?"+key.query)
	})
	if page == nil {
		return withoutReport(err)
	}
	c.answer(page.Value.status, nil)
	c.http.Response.Header.Set(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
	c.http.Response.SetBodyRaw(page.Value.html)
	if request.AcceptsGzip(c.http) {
		c.http.Response.Header.SetContentEncoding("gzip")
		c.http.Response.SetBodyRaw(page.Value.zipped)
	}
	return nil
}

// withoutReport returns the failure that a reader sees if err has prevented the page; nil: it was not made in time.
func withoutReport(err error) error {
	var failed *failure
	if errors.As(err, &failed) {
		return err
	}
	return &failure{fasthttp.StatusServiceUnavailable, "This report cannot be shown at the moment",
		"Please try again in a few seconds."}
}

// sharedQuery returns the fields of the query that select the clicks of a shared report.
func (c *call) sharedQuery() string {
	known := url.Values{}
	fields := []string{clickreport.FieldFrom, clickreport.FieldTo, clickreport.FieldZone, clickreport.FieldInterval,
		fieldPeriod, fieldCompare, fieldShow, fieldWall}
	for _, by := range schema.Dimensions() {
		if !c.hides(by) { // a filter would tell whether a guess is right
			fields = append(fields, string(by))
		}
	}
	for _, field := range fields {
		if c.http.QueryArgs().Has(field) {
			known.Set(field, cut(c.query(field), maxSharedName))
		}
	}
	return known.Encode()
}

// hides reports whether the readers of a report do not see the names of a dimension.
func (c *call) hides(by schema.Dimension) bool {
	return c.share != nil && c.share.HideTargets && clickreport.WordsOf(by).Targets
}

// makeShared makes the page for a URI. It is the same for all readers.
func (d *Dashboard) makeShared(
	ctx context.Context, share schema.Share, owner schema.Account, uri string,
) (sharedPage, error) {
	c := &call{ctx: ctx, http: &fasthttp.RequestCtx{}, dashboard: d, route: pathShared}
	c.http.Request.SetRequestURI(uri)
	c.readAs(share, owner)
	if err := d.showSharedReport(c); err != nil {
		if !errors.As(err, new(*failure)) {
			d.warnWithout("shared report", err)
		}
		return sharedPage{}, err
	}
	page := sharedPage{status: c.http.Response.StatusCode(), html: bytes.Clone(c.http.Response.Body())}
	w := request.Compressors.Get().(*gzip.Writer)
	defer request.Compressors.Put(w)
	page.zipped = gzipped(w, page.html)
	return page, nil
}

func (d *Dashboard) showSharedReport(c *call) error {
	page, err := d.newReportPage(c)
	if err != nil {
		return err
	}
	asked, some, invalid, err := page.ask(c)
	if err != nil {
		return err
	}
	page.fill(c, asked)
	if len(invalid) > 0 {
		return d.invalid(c, "report", page, reportProblems(invalid))
	}
	if page.Report, err = d.clickReport(c, page, asked, some); err != nil {
		return err
	}
	if c.http.QueryArgs().Has(fieldWall) {
		return d.render(c, "wall", newWall(page))
	}
	page.Share.Wall = page.Self + "&" + fieldWall
	return d.render(c, "report", page)
}

// sharedReport returns the page of the call's share.
func (d *Dashboard) sharedReport(c *call) (page reportPage, err error) {
	page.Share, page.Form.Action = &sharedPart{At: time.Now()}, string(c.http.URI().PathOriginal())
	if err := d.brandShared(c); err != nil {
		return page, err
	}
	if c.share.LinkID == 0 {
		hosts, err := d.hostsOf(c)
		page.Share.Of = d.subjectOf(*c.share, hosts)
		return page, err
	}
	links, err := d.DB.LinksByID(c.ctx, c.account.ID, []int64{c.share.LinkID})
	if err == nil && len(links) == 0 { // deleted meanwhile
		err = errNotShared
	}
	if err != nil {
		return page, err
	}
	link := d.linkView(links[0])
	if c.share.HideTargets {
		link.URL, link.ExpiredURL = "", ""
	}
	page.Link = &link
	return page, nil
}

// brandShared gives the page the brand of the share's domain. Reports of all domains get the default domain's brand, if
// the operator has set one.
func (d *Dashboard) brandShared(c *call) error {
	if c.share.DomainID == nil || *c.share.DomainID == 0 {
		c.brand = d.brand
		return nil
	}
	domains, err := d.DB.Domains(c.ctx, c.account.ID)
	for _, domain := range domains {
		if domain.ID == *c.share.DomainID {
			c.brand = newBrand(domain)
		}
	}
	return err
}

// sharedPart is shown by the page of a shared report instead of the owner's buttons.
type sharedPart struct {
	Of string    // the links, in words
	At time.Time // when the page was made

	Wall string // path of the page for a screen that nobody touches
}

// selectShared returns the links of the call's share, nil for all links of the account.
func (d *Dashboard) selectShared(c *call) ([]int64, error) {
	some, problems, err := clickreport.SelectLinks(c.ctx, d.DB, c.account.ID, func(field string) (string, bool) {
		switch {
		case field == clickreport.FieldTag:
			return c.share.Tag, true
		case c.share.DomainID != nil:
			return formatID(*c.share.DomainID), true
		}
		return "", false
	})
	for _, texts := range problems {
		return nil, &failure{fasthttp.StatusUnprocessableEntity, "This report cannot be made", strings.Join(texts, " ")}
	}
	return some, err
}

// unlockShared takes the password of a shared report.
func (d *Dashboard) unlockShared(c *call) error {
	c.turn.End()
	right, wait, err := d.Shares.Check(c.ctx, *c.share, c.client(), c.secret("password"))
	switch {
	case err != nil || wait > 0:
		return d.tooMany(c, "unlock", nil, "Too many attempts.", wait, err)
	case !right:
		return d.invalid(c, "unlock", nil, problems{"password": "That is not the password."})
	}
	path := string(c.http.URI().PathOriginal())
	if c.share.PasswordHash != "" {
		c.grant(path, sharing.NewGrant(*c.share))
	}
	if query := c.sharedQuery(); query != "" {
		path += "?" + query
	}
	return c.redirect(path)
}

// sharedCookieName returns the name of the cookie for a shared report. Its path rules out the prefix __Host-.
func (d *Dashboard) sharedCookieName() string {
	if d.secure {
		return "__Secure-" + sharedCookie
	}
	return sharedCookie
}

// grant sets the cookie of a reader who has given the password of the report at a path.
func (c *call) grant(path, value string) {
	cookie := fasthttp.AcquireCookie()
	defer fasthttp.ReleaseCookie(cookie)
	cookie.SetKey(c.dashboard.sharedCookieName())
	cookie.SetValue(value)
	cookie.SetPath(path)
	cookie.SetMaxAge(int(sharing.GrantAge.Seconds()))
	cookie.SetHTTPOnly(true)
	cookie.SetSameSite(fasthttp.CookieSameSiteLaxMode)
	cookie.SetSecure(c.dashboard.secure)
	c.http.Response.Header.SetCookie(cookie)
}
