package clickreport

import "time"

const RankWait = rankWait

var (
	RankPause = rankLimits.Pause
	RankShare = time.Duration(rankLimits.Share)
	RankAge   = rankLimits.Age
	MaxRanked = rankLimits.Keys
)
