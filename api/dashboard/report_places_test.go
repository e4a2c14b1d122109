package dashboard

import (
	"bytes"
	"strings"
	"testing"

	"linkstream/api/clickreport"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// maxMap is how many bytes the map of the world may have.
const maxMap = 20 << 10

func TestMapHasCountries(t *testing.T) {
	files, err := loadAssets()
	testkit.Must(t, err)
	content := files.files[strings.TrimPrefix(files.urls[mapFile], assetRoot)].content
	if len(content) > maxMap {
		t.Errorf("the map has %d bytes, want at most %d", len(content), maxMap)
	}
	for _, code := range []string{"DE", "US", "XK", "SG", "MT", "VA", "NR", "NZ", "SO", "CY"} {
		if _, err := files.symbol(mapFile, code); err != nil {
			t.Error(err)
		}
	}
	if n := bytes.Count(content, []byte(" id=\"")); n < 230 {
		t.Errorf("the map has %d places", n)
	}
}

func TestWorldMap(t *testing.T) {
	files, err := loadAssets()
	testkit.Must(t, err)
	asked := clickreport.Request{Limit: 4, Filter: map[schema.Dimension]string{schema.ByDevice: "mobile"}}
	page := &reportPage{Form: reportForm{Action: "/dashboard/report"}}
	names := []schema.NameCount{{Name: "", Total: 900}, {Name: "DE", Total: 100}, {Name: "FR", Total: 40},
		{Name: "XX", Total: 9}, {Name: "MT", Total: 1}}
	drawn, err := page.worldMap(files, asked, names)
	testkit.Must(t, err)
	var got []string
	for _, c := range drawn.Countries {
		got = append(got, c.Name+" "+strings.Repeat("#", c.Shade)+" "+c.Path)
	}
	testkit.Equal(t, "countries", got, []string{
		"Germany ##### /dashboard/report?country=DE&device=mobile&interval=&limit=4#report",
		"France #### /dashboard/report?country=FR&device=mobile&interval=&limit=4#report",
		"Malta # "})
	for code := range files.symbols {
		if code, drawn := strings.CutPrefix(code, mapFile+"#"); drawn && len(code) == 2 {
			names = append(names, schema.NameCount{Name: code, Total: 1})
		}
	}
	drawn, err = page.worldMap(files, asked, names)
	testkit.Must(t, err)
	testkit.Equal(t, "countries with a number", len(drawn.Countries), mapLinks)
	if n := len(drawn.Others[1]); n < 50 || n > namesRead-mapLinks {
		t.Errorf("%d countries without a number", n)
	}
	asked.Filter[schema.ByCountry] = "DE"
	drawn, err = page.worldMap(files, asked, names[1:2])
	testkit.Must(t, err)
	testkit.Equal(t, "path of the only country", drawn.Countries[0].Path, "")
	drawn, err = page.worldMap(files, asked, names[:1])
	testkit.Must(t, err)
	testkit.Equal(t, "map without countries", drawn, nil)
}

func TestWeekHeat(t *testing.T) {
	week := clickreport.Week{}
	week[0], week[25], week[167] = 1, 10, 5
	w := newWeekHeat(week)
	testkit.Equal(t, "shades", w.Cells[1:], []string{"M0 0h9v9h-9z", "", "M230 60h9v9h-9z", "", "M10 10h9v9h-9z"})
	testkit.Equal(t, "cells without people", strings.Count(w.Cells[0], "M"), 165)
	testkit.Equal(t, "busiest", w.Busy, "Busiest: Tuesday, 01:00 to 02:00")
	testkit.Equal(t, "numbers", strings.Count(w.Numbers(), ","), 167)
	rows := w.Rows()
	testkit.Equal(t, "last day", []any{rows[6].Weekday, rows[6].People[23], len(rows)}, []any{"Sunday", int64(5), 7})
	empty := newWeekHeat(clickreport.Week{})
	testkit.Equal(t, "empty week", []any{empty.Busy, strings.Count(empty.Cells[0], "M")}, []any{"", 168})
}

// A dimension without a card would be on no page.
func TestEachDimensionHasACard(t *testing.T) {
	listed := map[schema.Dimension]int{}
	for _, card := range cardLists {
		for _, by := range card.lists {
			listed[by]++
		}
	}
	for _, by := range schema.Dimensions() {
		testkit.Equal(t, "lists of "+string(by), listed[by], 1)
	}
}
