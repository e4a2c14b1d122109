package dashboard

import "time"

// For tests of what pages are made of.
var (
	NewChart     = func(days []dayClicks) chart { return newChart(english, time.UTC, days, time.Time{}) }
	ChartSince   = func(days []dayClicks, since time.Time) chart { return newChart(english, time.UTC, days, since) }
	TicksTo      = func(greatest int64) ([]tick, int64) { return ticksTo(english, greatest) }
	Number       = english.number
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
