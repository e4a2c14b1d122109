package dashboard

import "time"

// For tests of what pages are made of.
var (
	NewChart     = func(days []dayClicks) chart { return newChart(time.UTC, days, time.Time{}) }
	ChartSince   = func(days []dayClicks, since time.Time) chart { return newChart(time.UTC, days, since) }
	TicksTo      = ticksTo
	Number       = number
	DaysOf       = daysOf
	NewCounter   = newCounter
	FindPeriod   = findPeriod
	WriteCSV     = writeCSV
	NextPath     = nextPath
	ReadFileForm = readFileForm
	WithScheme   = withScheme
	WithCampaign = withCampaign
	BrowserName  = browserName

	SignInByAddress   = signInByAddress
	SignInByEmail     = signInByEmail
	SignInBySite      = signInBySite
	SignUpByAddress   = signUpByAddress
	SignUpBySite      = signUpBySite
	LinksByAccount    = linksByAccount
	BulkByAccount     = bulkByAccount
	PasswordByAccount = passwordByAccount
)

type (
	Period  = period
	Counter = counter
	Day     = dayClicks
)

func (p period) Since(now time.Time) time.Time { return p.since(now) }
