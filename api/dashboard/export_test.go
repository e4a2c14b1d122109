package dashboard

import (
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/api/request"
	"linkstream/schema/testkit"
)

// With the race detector, SQLite takes up to twenty times as long, and other tests share the processors.
func init() {
	callTimeout, bulkTimeout, restoreTime = testkit.Patience, testkit.Patience, 3*restoreTime
}

// For tests of the parts of pages.
var (
	NewChart     = func(days []dayClicks) chart { return ChartOf(figureClicks, days, time.Time{}) }
	ChartSince   = func(days []dayClicks, since time.Time) chart { return ChartOf(figureClicks, days, since) }
	TicksTo      = ticksTo
	Number       = number
	ReadDays     = readDays
	NewCounter   = newCounter
	WriteCSV     = writeCSV
	NextPath     = nextPath
	ReadFileForm = readFileForm
	WithScheme   = withScheme
	WithCampaign = withCampaign
	BrowserName  = browserName
	ParseExpiry  = parseExpiry

	SignInByAddress   = signInByAddress
	SignInByEmail     = signInByEmail
	SignInBySite      = signInBySite
	SignUpByAddress   = signUpByAddress
	SignUpBySite      = signUpBySite
	LinksByAccount    = linksByAccount
	BulkByAccount     = bulkByAccount
	PasswordByAccount = passwordByAccount
)

// ChartOf returns the chart of a figure.
func ChartOf(figure string, days []dayClicks, since time.Time) chart {
	return newChart(time.UTC, figure, days, since)
}

type (
	Counter = counter
	Day     = dayClicks
)

// Prices returns the price of each method of each path that is routed.
func (d *Dashboard) Prices() map[string]request.Price {
	prices := map[string]request.Price{}
	for method, paths := range d.router.List() {
		for _, path := range paths {
			if method != fasthttp.MethodHead { // as GET
				prices[method+" "+path] = d.prices[method+" "+path]
			}
		}
	}
	return prices
}

// RestoreTime is how long a request restores links.
func RestoreTime() time.Duration { return restoreTime }
