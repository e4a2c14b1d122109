package dashboard

import (
	"errors"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/api/admission"
	"linkstream/api/auth"
	"linkstream/api/ratelimit"
	"linkstream/api/slowread"
	"linkstream/schema/fair"
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
	attempts := []ratelimit.Attempt{byAddress.By(fair.Subnet(c.client()).String()), attempt}
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
	return "Please try again in " + english.counted(int64((wait+time.Minute-1)/time.Minute), "minute", "minutes") + "."
}

// busy reports whether err means that there is no room for an anonymous request or a password, and returns the page for
// it.
func busy(err error) (*failure, bool) {
	return errBusy, errors.Is(err, auth.ErrBusy) || errors.Is(err, admission.ErrBusy)
}

const readerPace = 10  // requests per second of a network, on average over paceOver
const sharedPace = 100 // requests per second of one shared report, likewise

// sharedTurns bounds the pages that are being made. Shared reports take turns, and pause after each page for as long as
// it took, so that they read clicks at most half of the time.
var sharedTurns = fair.Limits{Places: 1, Waiting: 64, WaitingEach: 8}

// sharedPages keeps pages for a while, at most some 25 MiB of them. AtOnce is the number of pages that sharedTurns lets
// be made or wait.
var sharedPages = slowread.Limits{Timeout: 8 * time.Second, Pause: 10 * time.Second, Share: 20, Age: 30 * time.Second,
	Keys:   128,
	AtOnce: 1 + 64}

// readers has the limits and the kept pages of all readers of shared reports.
type readers struct {
	byNetwork *fair.Pace[fair.Network]
	byShare   *fair.Pace[[32]byte]
	turns     *fair.Turns[int64] // by share
	pages     *slowread.Results[sharedKey, sharedPage]
}

func newReaders() *readers {
	return &readers{fair.NewPace[fair.Network](readerPace, paceOver), fair.NewPace[[32]byte](sharedPace, paceOver),
		fair.NewTurns[int64](sharedTurns), slowread.New[sharedKey, sharedPage](sharedPages)}
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
