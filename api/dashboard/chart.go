package dashboard

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"linkstream/api/clickreport"
	"linkstream/schema"
)

// This file and _chart.html draw the clicks per day. go-chart, which draws bench's charts, does not fit: its stacked
// bars show shares of 100 %, and it writes colors into style attributes, which the Content-Security-Policy forbids.
// This chart uses classes only, scales with the page while its text keeps its size, and gives each bar's numbers as
// text.

// Heights are in CSS pixels, widths in percent of the plot.
const (
	plotTop, plotBottom = 16.0, 256.0
	minBar              = 2.0 // minimum height of a bar above 0
	barGap              = 2.0 // between parts of a bar, so that their colors need not tell them apart
	maxDates            = 5   // labels below the bars, unless there are only 7
	maxMonths           = 4   // of them if they have the year
	maxTitles           = 31
	minColumns          = 7 // of a chart that begins at a birth, so that the first bar is not as wide as the page
)

// Figures that a chart draws. Clicks are the clicks of people and of bots, and imported clicks.
const (
	figureClicks   = ""
	figurePeople   = "people"
	figureVisitors = "visitors"
	figureBots     = "bots"
	figureImported = "imported"
)

var (
	figureKeys  = []string{figureClicks, figurePeople, figureVisitors, figureBots, figureImported}
	figureNames = map[string]string{figureClicks: "Clicks", figurePeople: "People", figureVisitors: "Visitors",
		figureBots: "Bots", figureImported: "Imported"}
)

// maxBars bounds the bars, so that each is two pixels wide on a phone, and pages are small: the table has a row for
// each.
const maxBars = 90

// Units of bars.
const (
	perHour, perSixHours, perTwelveHours  = "hour", "six hours", "twelve hours"
	perDay, perWeek, perMonth, perQuarter = "day", "week", "month", "quarter"
)

// chart shows a figure over time. Of clicks, bots are stacked on people, and imported clicks on both.
type chart struct {
	Figure  string // that is drawn
	Unit    string // of a bar
	Zone    string // in which days begin
	Summary string // text alternative
	Bars    []bar
	Columns int    // the plot has room for; at least as many as bars
	People  string // SVG path of all bars, which are 1 apart; of visitors, if they are drawn
	Bots    string
	// Imported is the path of imported clicks, "" without any. Sources has the names of those who have counted them.
	Imported, Sources string
	Ghost             string // path of the line of the time before, "" if nothing is known of it, or it has none
	Ticks             []tick
	Top               int64 // the end of the axis
	Dates             []dateLabel
	Unborn            bool   // there was no link yet
	Against           string // says in words what the figure is compared with
}

// Title names the figure and the unit.
func (c chart) Title() string { return figureNames[c.Figure] + " per " + c.Unit }

// UnitTitle is the heading of the table's first column.
func (c chart) UnitTitle() string {
	title := strings.ToUpper(c.Unit[:1]) + c.Unit[1:]
	if c.Unit == perSixHours || c.Unit == perTwelveHours {
		title += " from"
	}
	return title
}

// Each says what a bar is.
func (c chart) Each() string {
	switch c.Unit {
	case perSixHours, perTwelveHours:
		return c.Unit
	case perHour:
		return "an " + c.Unit
	}
	return "a " + c.Unit
}

// Rows returns the bars, newest first.
func (c chart) Rows() []bar {
	rows := slices.Clone(c.Bars)
	slices.Reverse(rows)
	return rows
}

// bar is the clicks of one unit, with its SVG coordinates.
type bar struct {
	Name string // the hour, the first of several hours, the day, or the first day of the week, month or quarter
	clickreport.Count
	Before *clickreport.Count // in the time that the report is compared with; nil if it is not known

	PeopleY, PeopleH     string
	BotsY, BotsH         string
	ImportedY, ImportedH string
}

// Date is the bar's name for people.
func (b bar) Date() string { return dateText(b.Name) }

// dateText returns a day, or an hour, in the form of all dates on the pages. The script shows it in the reader's
// language.
func dateText(name string) string {
	if day, err := time.Parse(time.DateOnly, name); err == nil {
		return day.Format("2 Jan 2006")
	}
	if hour, err := time.Parse(hourLayout, name); err == nil {
		return hour.Format("2 Jan 2006, 15:04")
	}
	return name
}

// HasVisitors reports whether any bar has visitors.
func (c chart) HasVisitors() bool {
	return slices.ContainsFunc(c.Bars, func(b bar) bool { return b.Visitors != nil })
}

// HasImported reports whether any bar has imported clicks.
func (c chart) HasImported() bool {
	return slices.ContainsFunc(c.Bars, func(b bar) bool { return b.Imported > 0 })
}

// drawn returns the parts of a bar of a figure, from below: people or visitors, bots, and imported clicks.
func drawn(figure string, n clickreport.Count) (parts [3]int64) {
	switch figure {
	case figurePeople:
		return [3]int64{n.People}
	case figureVisitors:
		if n.Visitors != nil {
			parts[0] = *n.Visitors
		}
		return parts
	case figureBots:
		return [3]int64{0, n.Bots}
	case figureImported:
		return [3]int64{0, 0, n.Imported}
	}
	return [3]int64{n.People, n.Bots, n.Imported}
}

// figureOf is what a chart of a figure shows of clicks.
func figureOf(figure string, n clickreport.Count) int64 {
	parts := drawn(figure, n)
	return parts[0] + parts[1] + parts[2]
}

// Value returns the figure of a bar.
func (c chart) Value(b bar) int64 { return figureOf(c.Figure, b.Count) }

// Column is the table's with the figure.
func (c chart) Column() string {
	if c.Figure == figureClicks {
		return "Total"
	}
	return figureNames[c.Figure]
}

// HasTitles reports whether each bar has a title. Pages with more bars would be too large.
func (c chart) HasTitles() bool { return len(c.Bars) <= maxTitles }

// Was returns the figure in the time that the bar is compared with, nil if it is not known.
func (c chart) Was(b bar) *int64 {
	if b.Before == nil || c.Figure == figureVisitors && b.Before.Visitors == nil {
		return nil
	}
	return new(figureOf(c.Figure, *b.Before))
}

// withSources returns the chart with the names of the sources of its imported clicks.
func (c chart) withSources(sources []schema.NameCount) chart {
	names := make([]string, len(sources))
	for i, source := range sources {
		names[i] = source.Name
	}
	c.Sources = strings.Join(names, ", ")
	return c
}

// tick is a grid line of the vertical axis.
type tick struct{ Y, LabelY, Label string }

// dateLabel names a bar.
type dateLabel struct {
	X, Anchor, Label string
	Name, Form       string // the date, and the parts of it that the label has: "day" or "month"; "" if it has none
	Minor            bool   // hidden if the plot is narrow
}

// newChart returns the chart of a figure in consecutive days or hours in a time zone. Without such numbers, it is of
// clicks. The chart begins at since, the earliest time of a click, or at an earlier click that was imported.
func newChart(zone *time.Location, figure string, days []dayClicks, since time.Time) chart {
	c := chart{Zone: zone.String(), Figure: figure}
	all := len(days)
	days, c.Unborn = fromBirth(days, since.In(zone))
	c.Unit, c.Bars = barsOf(days)
	if c.Columns = len(c.Bars); len(days) < all {
		c.Columns = max(c.Columns, minColumns)
	}
	unknown := slices.ContainsFunc(c.Bars, func(b bar) bool { return b.Visitors == nil })
	if figure == figureVisitors && unknown || figure == figureImported && !c.HasImported() {
		c.Figure = figureClicks
	}
	var most bar
	ghost := int64(0)
	for _, b := range c.Bars {
		if c.Value(b) > c.Value(most) {
			most = b
		}
		if was := c.Was(b); was != nil {
			ghost = max(ghost, *was)
		}
	}
	ticks, top := ticksTo(max(ghost, c.Value(most)))
	c.Ticks, c.Top = ticks, top
	if ghost > 0 {
		c.Ghost = c.ghost(top)
	}
	for i := range c.Bars {
		b := &c.Bars[i]
		b.place(c.Figure, top)
		c.People += outline(i, b.PeopleY, b.PeopleH)
		c.Bots += outline(i, b.BotsY, b.BotsH)
		c.Imported += outline(i, b.ImportedY, b.ImportedH)
	}
	c.Dates = datesBelow(c.Bars, c.Columns, c.Unit)
	c.Summary = c.summary(days, most)
	return c
}

// ghost draws the time that the report is compared with as a line through the middles of bars, whose lengths are
// relative, which are short. Of a single bar, it is as wide as that.
func (c chart) ghost(top int64) (path string) {
	last := 0.0
	for i, b := range c.Bars {
		was := c.Was(b)
		if was == nil {
			break
		}
		y := math.Round(float64(*was) / float64(top) * (plotBottom - plotTop))
		if i == 0 {
			path = "M0 " + px(y) + "l"
		} else {
			path += "1 " + px(y-last) + " "
		}
		last = y
	}
	if path = strings.TrimSpace(path); strings.HasSuffix(path, "l") {
		path = "M-.5 " + strings.TrimSuffix(path[3:], "l") + "h1"
	}
	return strings.ReplaceAll(path, " -", "-")
}

// fromBirth leaves out what is before a time, up to the first click. None is left out if nothing is later.
func fromBirth(days []dayClicks, since time.Time) (later []dayClicks, unborn bool) {
	for i, day := range days {
		unit := perDay
		if len(day.Date) == len(hourLayout) {
			unit = perHour
		}
		if day.Total() > 0 || day.Date >= firstOf(unit, since.Format(hourLayout[:len(day.Date)])) {
			return days[i:], false
		}
	}
	return days, len(days) > 0
}

// hourLayout is the form of a day's date where the day is an hour.
const hourLayout = "2006-01-02 15:04"

// barsOf groups days, or hours, into at most maxBars bars.
func barsOf(days []dayClicks) (unit string, bars []bar) {
	units := []string{perDay, perWeek, perMonth, perQuarter}
	if len(days) > 0 && len(days[0].Date) == len(hourLayout) {
		units = []string{perHour, perSixHours, perTwelveHours}
	}
	for _, unit = range units {
		if bars = barsPer(unit, days); len(bars) <= maxBars {
			break
		}
	}
	return unit, bars
}

func barsPer(unit string, days []dayClicks) (bars []bar) {
	for _, day := range days {
		name := firstOf(unit, day.Date)
		if len(bars) == 0 || bars[len(bars)-1].Name != name {
			bars = append(bars, bar{Name: name, Count: clickreport.Count{Visitors: new(int64)}})
			if day.Before != nil {
				bars[len(bars)-1].Before = &clickreport.Count{Visitors: new(int64)}
			}
		}
		last, twice := &bars[len(bars)-1], unit == perSixHours || unit == perTwelveHours
		addCount(&last.Count, day.Count, twice)
		if day.Before != nil {
			addCount(last.Before, *day.Before, twice)
		}
	}
	return bars
}

// addCount adds clicks. Who comes in two hours would count twice.
func addCount(sum *clickreport.Count, more clickreport.Count, twice bool) {
	sum.Add(more.Period)
	switch {
	case more.Visitors == nil || twice:
		sum.Visitors = nil
	case sum.Visitors != nil:
		*sum.Visitors += *more.Visitors
	}
}

// firstOf returns the first day or hour of the unit that contains a day or an hour. Weeks start on Monday.
func firstOf(unit, name string) string {
	layout := hourLayout[:len(name)]
	at, err := time.Parse(layout, name)
	if err != nil {
		return name
	}
	switch layout = time.DateOnly; unit {
	case perHour:
		at, layout = at.Truncate(time.Hour), hourLayout
	case perSixHours:
		at, layout = at.Truncate(6*time.Hour), hourLayout
	case perTwelveHours:
		at, layout = at.Truncate(12*time.Hour), hourLayout
	case perWeek:
		at = at.AddDate(0, 0, -(int(at.Weekday())+6)%7)
	case perMonth:
		at = at.AddDate(0, 0, 1-at.Day())
	case perQuarter:
		at = at.AddDate(0, -(int(at.Month())-1)%3, 1-at.Day())
	}
	return at.Format(layout)
}

// place sets the coordinates of what a figure's chart draws, above the axis. top is the end of the axis.
func (b *bar) place(figure string, top int64) {
	y, parts := 0.0, drawn(figure, b.Count)
	for i, part := range []struct{ y, h *string }{
		{&b.PeopleY, &b.PeopleH}, {&b.BotsY, &b.BotsH}, {&b.ImportedY, &b.ImportedH}} {
		h, gap := height(parts[i], top), 0.0
		if y > 0 && h >= 2*barGap {
			gap = barGap
		}
		*part.y, *part.h = px(y+gap), px(h-gap)
		y += h
	}
}

// outline draws a part of bar i as a line upwards. Its width is the stroke's.
func outline(i int, y, height string) string {
	if height == "0" {
		return ""
	}
	return fmt.Sprintf("M%d %sv%s", i, y, height)
}

// height is in whole pixels, which keep pages small.
func height(n, top int64) float64 {
	if n == 0 {
		return 0
	}
	return max(minBar, math.Round(float64(n)/float64(top)*(plotBottom-plotTop)))
}

// ticksTo returns grid lines at round numbers from 0 to the first one at or above greatest, which ends the axis.
func ticksTo(greatest int64) (ticks []tick, top int64) {
	step := roundStep(greatest)
	top = max(1, (greatest+step-1)/step) * step
	for n := int64(0); n <= top; n += step {
		y := plotBottom - float64(n)/float64(top)*(plotBottom-plotTop)
		ticks = append(ticks, tick{Y: px(y), LabelY: px(y + 4), Label: shortNumber(n, top)})
	}
	return ticks, top
}

// roundStep returns the smallest of 1, 2, 5, 10, 20, 50, … that needs at most four steps to reach greatest.
func roundStep(greatest int64) int64 {
	for decade := int64(1); ; decade *= 10 {
		for _, step := range []int64{decade, 2 * decade, 5 * decade} {
			if step > (greatest-1)/4 {
				return step
			}
		}
		if decade > math.MaxInt64/100 {
			return 5 * decade
		}
	}
}

// shortNumber formats a number of the axis. top, the end of the axis, decides the unit (none, k, M).
func shortNumber(n, top int64) string {
	for _, unit := range []struct {
		size   int64
		symbol string
	}{{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if n >= unit.size && top >= 1e4 {
			return strconv.FormatFloat(float64(n)/float64(unit.size), 'g', 4, 64) + unit.symbol
		}
	}
	return number(n)
}

// labelled is a range of bars that a label below them names: one bar, or a day of hours.
type labelled struct {
	name     string // of its first bar
	first, n int
}

// labelledIn returns the ranges that may have labels. Hours of more than two days are labelled by day.
func labelledIn(bars []bar, byDay bool) (all []labelled) {
	for i, b := range bars {
		if last := len(all) - 1; byDay && last >= 0 && all[last].name[:len(time.DateOnly)] == b.Name[:len(time.DateOnly)] {
			all[last].n++
			continue
		}
		all = append(all, labelled{b.Name, i, 1})
	}
	return all
}

// datesBelow labels some bars, always the last one, at the middle of what a label names.
func datesBelow(bars []bar, columns int, unit string) (labels []dateLabel) {
	layout, parts, most, form := "2 Jan", "day", maxDates, time.DateOnly
	byDay := unit == perHour && len(bars) > 2*25 || unit == perSixHours || unit == perTwelveHours
	switch {
	case byDay || unit == perHour:
		if form = hourLayout; !byDay {
			layout, parts = "15:04", ""
		}
	case unit != perDay:
		layout, parts, most = "Jan 2006", "month", maxMonths
	}
	all := labelledIn(bars, byDay)
	step := (len(all) + most - 1) / most
	if len(all) <= 7 {
		step = 1
	}
	for i := len(all) - 1; i >= 0; i -= step {
		at, err := time.Parse(form, all[i].name)
		if err != nil {
			continue
		}
		middle := 100 * (float64(all[i].first) + float64(all[i].n)/2) / float64(columns)
		label := dateLabel{X: percent(middle), Anchor: "middle", Label: at.Format(layout),
			Name: all[i].name[:len(time.DateOnly)],
			Form: parts, Minor: len(labels)%2 == 1}
		switch { // keep the text within the plot
		case middle > 95:
			label.X, label.Anchor = "100%", "end"
		case middle < 5:
			label.X, label.Anchor = "0", "start"
		}
		labels = append(labels, label)
	}
	return labels
}

// summary says what the chart shows. most is the highest bar.
func (c chart) summary(days []dayClicks, most bar) string {
	if len(days) == 0 {
		return "No clicks"
	}
	all := sumOf(days)
	text := fmt.Sprintf("%s from %s to %s, %s: %s by people, %s by bots", c.Title(), dateText(days[0].Date),
		dateText(days[len(days)-1].Date), c.Zone, number(all.People), number(all.Bots))
	if all.Imported > 0 {
		text += fmt.Sprintf(", %s imported", number(all.Imported))
	}
	if c.Value(most) == 0 {
		return text
	}
	return fmt.Sprintf("%s; the most, %s, in the %s from %s", text, number(c.Value(most)), c.Unit,
		most.Date())
}

func percent(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) + "%" }

func px(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }
