package dashboard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"linkstream/api/clickreport"
)

// weekHeat shows people by weekday and hour. A cell is 10 wide and high.
type weekHeat struct {
	People clickreport.Week
	Cells  [shades + 1]string // SVG paths of the cells of each shade
	Busy   string             // the hour with most people, "" if there are none
}

func newWeekHeat(week clickreport.Week) *weekHeat {
	w := &weekHeat{People: week}
	most, busiest := slices.Max(week[:]), 0
	for i, people := range week {
		weekday, hour := week.At(i)
		w.Cells[shadeOf(float64(people)/float64(max(1, most)))] += fmt.Sprintf("M%d %dh9v9h-9z", 10*hour, 10*(weekday-1))
		if people > week[busiest] {
			busiest = i
		}
	}
	if week[busiest] > 0 {
		weekday, hour := week.At(busiest)
		w.Busy = fmt.Sprintf("Busiest: %s, %02d:00 to %02d:00", weekdayName(weekday), hour, hour+1)
	}
	return w
}

// weekdayName returns the name of a weekday, 1 for Monday.
func weekdayName(weekday int) string { return time.Weekday(weekday % 7).String() }

// weekRow is a row of the table that says the same.
type weekRow struct {
	Weekday string
	People  []int64
}

// Rows returns the days of the week.
func (w *weekHeat) Rows() (rows []weekRow) {
	hours := len(w.People) / 7
	for day := range 7 {
		rows = append(rows, weekRow{weekdayName(day + 1), w.People[day*hours:][:hours]})
	}
	return rows
}

// Numbers are the people of all hours, for the script.
func (w *weekHeat) Numbers() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(w.People), " ", ","), "[]")
}
