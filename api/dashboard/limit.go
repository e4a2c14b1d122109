package dashboard

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/api/auth"
	"linkstream/api/ratelimit"
	"linkstream/api/reads"
	"linkstream/api/request"
	"linkstream/schema/turns"
)

// Limits of attempts. Many people may share an address. The limit per account also locks out its owner until the window
// ends, except in a browser that is known for the account: a limit that many addresses could evade would be worthless.
var (
	signInByAddress   = ratelimit.AttemptLimit{Purpose: "sign in by address", PerMinute: 30, PerHour: 300}
	signInByBrowser   = ratelimit.AttemptLimit{Purpose: "sign in by browser", PerMinute: 10, PerHour: 100}
	signInByEmail     = ratelimit.AttemptLimit{Purpose: "sign in by email", PerMinute: 10, PerHour: 100}
	signInBySite      = ratelimit.AttemptLimit{Purpose: "sign in by /48", PerMinute: 120, PerHour: 1200}
	signUpByAddress   = ratelimit.AttemptLimit{Purpose: "sign up by address", PerMinute: 10, PerHour: 60}
	signUpBySite      = ratelimit.AttemptLimit{Purpose: "sign up by /48", PerMinute: 40, PerHour: 240}
	signUpByEmail     = ratelimit.AttemptLimit{Purpose: "sign up by email", PerMinute: 10, PerHour: 20}
	linksByAccount    = ratelimit.AttemptLimit{Purpose: "create links", PerMinute: 120, PerHour: 2000}
	bulkByAccount     = ratelimit.AttemptLimit{Purpose: "create many links", PerMinute: 10, PerHour: 60}
	importsByAccount  = ratelimit.AttemptLimit{Purpose: "import links", PerMinute: 10, PerHour: 60}
	importsByAddress  = ratelimit.AttemptLimit{Purpose: "import links by address", PerMinute: 20, PerHour: 120}
	importsBySite     = ratelimit.AttemptLimit{Purpose: "import links by /48", PerMinute: 40, PerHour: 240}
	passwordByAccount = ratelimit.AttemptLimit{Purpose: "change password", PerMinute: 10, PerHour: 50}
)

// byClient returns the attempts that count one by a client: by its subnet, attempt itself and, for IPv6, by its site.
func (d *Dashboard) byClient(
	c *call, byAddress, bySite ratelimit.AttemptLimit, attempt ratelimit.Attempt,
) []ratelimit.Attempt {
	attempts := []ratelimit.Attempt{byAddress.By(turns.Subnet(c.client()).String()), attempt}
	if c.client().Is6() {
		attempts = append(attempts, bySite.By(c.site().String()))
	}
	return attempts
}

// tooMany answers a form that was sent too often with its page, which says what there are too many of. It returns err
// if that is not nil.
func (d *Dashboard) tooMany(c *call, page string, data any, what string, wait time.Duration, err error) error {
	if err != nil {
		return err
	}
	c.http.Response.Header.Set(fasthttp.HeaderRetryAfter, strconv.Itoa(int(wait.Seconds())))
	p := problems{"": what + " " + tryAgain(wait)}
	return d.write(c, fasthttp.StatusTooManyRequests, page, data, p)
}

// tryAgain says when to try again.
func tryAgain(wait time.Duration) string {
	if wait <= time.Minute {
		return "Please try again in a minute."
	}
	return "Please try again in " + counted(int64((wait+time.Minute-1)/time.Minute), "minute", "minutes") + "."
}

// busy reports whether err means that an anonymous request or a password has no turn, and returns the page for it.
func busy(err error) (*failure, bool) {
	return errBusy, errors.Is(err, auth.ErrBusy) || errors.Is(err, request.ErrBusy)
}

const readerPace = 10  // requests per second of a network, on average over paceOver
const sharedPace = 100 // requests per second of one shared report, likewise

// Pages of shared reports that are not kept are made in turns: by the account whose reports they are, one at a time of
// an account, within an account by share, and within a share by the network of the reader. All of them pause after each
// page for as long as it took, so that readers of an account read clicks at most half of the time.
var (
	sharedByAccount = turns.Limits{Places: 2, PlacesEach: 1, Waiting: 1024, WaitingEach: 64}
	sharedByShare   = turns.Limits{PlacesEach: 1, WaitingEach: 32}
	sharedByNetwork = turns.Limits{PlacesEach: 1, WaitingEach: 4}
)

// sharedPages keeps pages for a while, at most some 25 MiB of them.
var sharedPages = reads.Limits{
	Timeout: 8 * time.Second, Pause: 10 * time.Second, Share: 20, Age: 30 * time.Second, Keys: 128,
}

// readers has the limits and the kept pages of all readers of shared reports.
type readers struct {
	byNetwork, byShare         *turns.Bucket // requests
	accounts, shares, networks *turns.Turns
	pages                      *reads.Results[sharedKey, sharedPage]
}

func newReaders() *readers {
	return &readers{turns.NewBucket(readerPace, paceOver), turns.NewBucket(sharedPace, paceOver),
		turns.New(sharedByAccount), turns.New(sharedByShare), turns.New(sharedByNetwork),
		reads.NewResults[sharedKey, sharedPage](sharedPages)}
}

// take waits for the turn of a network at a share of an account. After nil, leave must follow.
func (r *readers) take(ctx context.Context, account, share, network turns.Client) (leave func(), err error) {
	var taken []func()
	leaveAll := func() {
		for _, leave := range slices.Backward(taken) {
			leave()
		}
	}
	for _, of := range []struct {
		turns  *turns.Turns
		client turns.Client
	}{{r.networks, network.Of(share)}, {r.shares, share}, {r.accounts, account}} {
		if err := of.turns.Take(ctx, of.client, 1); err != nil {
			leaveAll()
			return nil, err
		}
		taken = append(taken, func() { of.turns.Leave(of.client) })
	}
	began := time.Now()
	return func() { time.AfterFunc(time.Since(began), leaveAll) }, nil
}

// sharedKey names a page: a share, and the fields of the query that matter.
type sharedKey struct {
	share int64
	query string
}

type sharedPage struct {
	status       int
	html, zipped []byte
}
