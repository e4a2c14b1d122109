package dashboard

import (
	"encoding/csv"
	"io"
	"strconv"
)

// writeCSV writes a header and a line per day. No cell holds text of users or visitors, so none can be a spreadsheet
// formula.
func writeCSV(w io.Writer, days []dayClicks) error {
	out := csv.NewWriter(w)
	lines := [][]string{{"date", "people", "bots", "total"}}
	for _, day := range days {
		lines = append(lines, []string{day.Date, strconv.FormatInt(day.People, 10), strconv.FormatInt(day.Bots, 10),
			strconv.FormatInt(day.People+day.Bots, 10)})
	}
	return out.WriteAll(lines) // flushes
}
