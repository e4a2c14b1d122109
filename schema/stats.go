package schema

import "time"

// Device is a kind of client: one of the names below.
type Device = string

// The devices. Every click has one.
const (
	Desktop Device = "desktop"
	Mobile  Device = "mobile"
	Tablet  Device = "tablet"
	Bot     Device = "bot"
	Other   Device = "other"
)

// TopBrowsers is the maximum number of browsers in Stats.
const TopBrowsers = 10

// A link has at most about MaxNames referrers, as many campaigns and MaxPaths paths of a UTC day by name, and about
// MaxCombinations combinations of the names of all dimensions: by quarter of an hour, about MaxQuarterRows. The rest is
// counted as OtherName, which is no host.
const (
	MaxNames = 1000
	MaxPaths = 200
	// MaxPathName is how many characters the name of a path has at most. Longer paths are counted as OtherName.
	MaxPathName = 64
	// A link that is popular all over the world has about 15,000 combinations in 50,000 clicks.
	MaxCombinations = 20_000
	MaxQuarterRows  = 5 * MaxCombinations
	OtherName       = "Other"
)

// DayNumber returns the UTC day of t, counted from 1970-01-01.
func DayNumber(t time.Time) int64 {
	return t.Truncate(utcDay).Unix() / int64(utcDay/time.Second)
}

// QuarterNumber returns the quarter of an hour of t, counted from 1970-01-01.
func QuarterNumber(t time.Time) int64 { return t.Unix() / int64(ReportResolution/time.Second) }

// DayCount counts the clicks of a UTC day.
type DayCount struct {
	Date  string // 2006-01-02
	Total int64
}

// Stats holds the counts of one link, consistent with each other: ClicksByDay and Devices each sum to TotalClicks.
type Stats struct {
	TotalClicks int64
	ClicksByDay []DayCount       // days that have clicks, ascending
	Devices     map[Device]int64 // devices that have clicks
	Browsers    map[string]int64 // the TopBrowsers most frequent, ties ordered by name
}
