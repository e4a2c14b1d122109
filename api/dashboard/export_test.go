package dashboard

import (
	"context"
	"time"
)

// For tests of what pages are made of.
var (
	NewChart     = newChart
	TicksTo      = ticksTo
	Number       = number
	EveryDay     = everyDay
	LinkDays     = linkDays
	NewCounter   = newCounter
	FindPeriod   = findPeriod
	WriteCSV     = writeCSV
	NewQR        = newQR
	QRPNG        = qrPNG
	QRSVG        = qrSVG
	NewLagWatch  = newLagWatch
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
	Progress = progress
	LagWatch = lagWatch
	Period   = period
	Counter  = counter
	Sum      = sum
)

func (p period) Since(now time.Time) time.Time { return p.since(now) }

func (w *lagWatch) Progress(ctx context.Context) progress { return w.progress(ctx) }
