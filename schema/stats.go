package schema

// Device is a category of client.
type Device string

// The devices. Every click has exactly one.
const (
	Desktop Device = "desktop"
	Mobile  Device = "mobile"
	Tablet  Device = "tablet"
	Bot     Device = "bot"
	Other   Device = "other"
)

// TopBrowsers is how many browsers Stats names.
const TopBrowsers = 10

// DayCount is the number of clicks on a UTC day.
type DayCount struct {
	Date  string // 2006-01-02
	Total int64
}

// Stats are the counts of one link, all of one moment: ClicksByDay and Devices each sum to TotalClicks.
type Stats struct {
	TotalClicks int64
	ClicksByDay []DayCount       // days that have clicks, ascending
	Devices     map[Device]int64 // devices that have clicks
	Browsers    map[string]int64 // the TopBrowsers most frequent, ties by name
}
