package dashboard

import (
	"context"
	"fmt"
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

// TopWatch has the links with the most clicks of accounts with many links.
type TopWatch = topWatch

var NewTopWatch = newTopWatch

const (
	RankedAtOnce = rankedAtOnce
	RankWait     = rankWait
	RankPause    = rankPause
	RankShare    = rankShare
	RankAge      = rankAge
	MaxRankings  = maxRankings
)

// Of describes the ranking of an account that has total clicks since a day: "unknown", or its first link and its time.
func (w *topWatch) Of(ctx context.Context, accountID int64, since time.Time, total int64) string {
	found := w.of(ctx, accountID, since, total)
	if found == nil {
		return "unknown"
	}
	text := ""
	for _, link := range found.links {
		text += fmt.Sprint(link.LinkID, " ")
	}
	return text + found.Clock()
}
