// Package dashboard serves the pages for people: sign-in, links and their statistics, domains, API tokens and the
// account.
//
// Pages are rendered on the server from embedded templates and work without JavaScript. A file that a noun begins, such
// as link_list.go, has routes, page data and handlers of that noun. The other files are the frame of all pages: call.go
// is a request, page.go renders, session.go decides who may pass. A noun uses itself and the frame; only this file and
// the overview join nouns. The layout test holds that.
package dashboard

import (
	"strings"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"linkstream/api/auth"
	"linkstream/api/ratelimit"
	"linkstream/api/request"
	"linkstream/schema"
	"linkstream/schema/clientaddr"
	"linkstream/schema/turns"
)

// Config is the configuration of the dashboard.
type Config struct {
	URL            schema.BaseURL     // of the dashboard and the API; https makes cookies Secure
	Unnamed        bool               // URL is not configured but that of the listener, which may have other names
	SignUp         bool               // anyone may create an account
	Site           schema.Site        // name and colour of the default domain; both empty: the service's mark
	TrustedProxies clientaddr.Proxies // whose X-Forwarded-For is believed
	PagesPerSecond int                // requests of an account, on average over paceOver
	Now            func() time.Time   // the clock of reports and of limited attempts such as sign-ins; nil: time.Now
}

// New returns a dashboard.
func New(cfg Config, parts Parts) (*Dashboard, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	d := &Dashboard{
		Parts: parts, now: cfg.Now, url: cfg.URL, unnamed: cfg.Unnamed, secure: cfg.URL.Scheme() == "https",
		signUp: cfg.SignUp, proxies: cfg.TrustedProxies, sessions: auth.NewSessions(parts.DB),
		attempts:  ratelimit.NewAttemptLimiter(parts.DB, cfg.Now),
		passwords: parts.Shortener.Passwords(), pace: turns.NewBucket(cfg.PagesPerSecond, paceOver),
		readers: newReaders(), files: request.NewFiles(parts.Log), bodies: request.NewBodies(),
	}
	if cfg.Site.Name != "" || cfg.Site.Color != "" {
		d.brand = newBrand(schema.Domain{Host: string(parts.Shortener.Base().Host()), Site: cfg.Site})
	}
	var err error
	if d.assets, err = loadAssets(); err != nil {
		return nil, err
	}
	if _, err = templates(); err != nil {
		return nil, err
	}
	if d.busyPage, err = d.renderBusy(); err != nil {
		return nil, err
	}
	d.reference = d.newReference(parts.Document)
	d.router = router.New()
	d.router.RedirectTrailingSlash, d.router.RedirectFixedPath = false, false // each page has one path
	d.router.HandleOPTIONS = false
	noPage := func(*call) error { return errNoPage }
	inside := d.handler(request.OtherRoute, admitAnyone, request.Constant, noPage)
	outside := d.handler(request.OtherRoute, admitNobody, request.Constant, noPage)
	d.router.NotFound = func(http *fasthttp.RequestCtx) {
		if strings.HasPrefix(string(http.URI().PathOriginal()), Root+"/") {
			inside(http)
		} else {
			outside(http)
		}
	}
	d.router.MethodNotAllowed = d.handler(request.OtherRoute, admitAnyone, request.Constant,
		func(*call) error { return errMethod })
	d.readable, d.above, d.kept = map[string]bool{}, map[string]int{}, map[string][]string{}
	d.prices = map[string]request.Price{}
	d.routes()
	d.answer = compressing(d.router.Handler)
	return d, nil
}

// routes registers all paths. Each noun's file adds its own.
func (d *Dashboard) routes() {
	d.route(fasthttp.MethodGet, "/", admitNobody, request.Constant, func(c *call) error { return c.redirect(Root) })
	d.route(fasthttp.MethodGet, pathRobots, admitNobody, request.Constant, func(c *call) error {
		c.http.SetContentType("text/plain; charset=utf-8")
		c.http.SetBodyString("User-agent: *\nDisallow: /\n")
		return nil
	})
	d.route(fasthttp.MethodGet, pathAgents, admitNobody, request.Constant, func(c *call) error {
		c.http.SetContentType("text/plain; charset=utf-8")
		c.http.SetBodyString(agentsText)
		return nil
	})
	d.route(fasthttp.MethodGet, pathBrand+"{file}", admitNobody, request.Constant, d.answerBrand)
	d.router.GET(assetRoot+"{file}", d.serveAsset)
	d.router.HEAD(assetRoot+"{file}", d.serveAsset)
	d.prices[fasthttp.MethodGet+" "+assetRoot+"{file}"] = request.Constant
	d.routeSignIn()
	d.routeAccount()
	d.routeTokens()
	d.routeWebhooks()
	d.routeOverview()
	d.routeLinks()
	d.routeTrash()
	d.routeTags()
	d.routeBulk()
	d.routeTransfer()
	d.routeReports()
	d.routeShares()
	d.routeShared()
	d.routeDomains()
	d.get(pathStream, request.Streams, d.answerStream)
	d.routeReloads()
}
