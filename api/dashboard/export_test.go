package dashboard

import "time"

// For tests of what pages are made of.
var (
	NewChart     = func(days []dayClicks) chart { return newChart(time.UTC, days, time.Time{}) }
	ChartSince   = func(days []dayClicks, since time.Time) chart { return newChart(time.UTC, days, since) }
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
	Counter = counter
	Day     = dayClicks
)
