package dashboard

import (
	"encoding/csv"
	"io"
	"strconv"

	"linkstream/schema"
)

// writeCSV writes a line for each day, below a header. No cell holds what a user or a visitor wrote, so that none can
// be a formula to the program that opens it.
func writeCSV(w io.Writer, days []schema.DayReport) error {
	out := csv.NewWriter(w)
	lines := [][]string{{"date", "people", "bots", "total"}}
	for _, day := range days {
		lines = append(lines, []string{day.Date, strconv.FormatInt(day.People, 10), strconv.FormatInt(day.Bots, 10),
			strconv.FormatInt(day.People+day.Bots, 10)})
	}
	return out.WriteAll(lines) // which flushes
}
