//go:build engines

package e2e_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"linkstream/schema/testkit"
)

// A bar of a chart: what the table has of it, where it is, and what is shown beside it.
const (
	barTexts = `[...document.querySelectorAll(".chart tbody tr")].reverse().map(({ cells: c }) => c[0].textContent +
		": " + c[3].textContent + " clicks, " + c[1].textContent + " people, " + c[2].textContent + " bots, " +
		c[c.length - 1].textContent + " before")`
	barAt = `((at) => { const { left, top, width } = document.querySelector(".chart-plot").getBoundingClientRect();
		return [left + (at + .5) * width / 7, top + 100]; })`
	barSays  = `document.querySelector(".chart-plot").getAttribute("aria-valuetext")`
	barShows = `((tip) => tip.checkVisibility() ? tip.innerText : "")(document.querySelector(".chart-value"))`
	// barFar is how far the numbers are from the bar's side, and how far outside of the chart.
	barFar = `((at) => { const box = (name) => document.querySelector(name).getBoundingClientRect();
		const plot = box(".chart-plot"), tip = box(".chart-value"), width = plot.width / 7, left = plot.left + at * width;
		return [Math.min(Math.abs(tip.left - left - width), Math.abs(left - tip.right)),
			Math.max(0, plot.top - tip.top, tip.bottom - plot.bottom, tip.right - plot.right)]; })`
)

// TestDashboardChart reads bars of a report by the mouse, by a tap and by the keyboard, also while numbers come in, and
// chooses what the chart draws.
func TestDashboardChart(t *testing.T) {
	t.Parallel()
	s := filledSystem(t)
	b := s.tab(t).signIn(s)
	for _, width := range []int64{1440, 390} {
		b.size(width, 1000)
		b.page("/dashboard/report?period=7d")
		bars := evaluate[[]string](b, barTexts)
		testkit.Equal(t, "bars", len(bars), 7)
		for at, bar := range bars {
			place := evaluate[[]float64](b, barAt+"("+string('0'+rune(at))+")")
			b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, place[0], place[1]))
			testkit.Equal(t, "text of the bar", evaluate[string](b, barSays), bar)
			date, _, _ := strings.Cut(bar, ":")
			if shown := evaluate[string](b, barShows); !strings.HasPrefix(shown, date) || !strings.Contains(shown, "Before") {
				t.Errorf("%q is shown for %q", shown, bar)
			}
			if far := evaluate[[]float64](b, barFar+"("+string('0'+rune(at))+")"); slices.Max(far) > 9 {
				t.Errorf("at %d pixels, the numbers of bar %d are %v away, and %v outside", width, at, far[0], far[1])
			}
		}
		b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, 5, 5))
		testkit.Equal(t, "what is shown beside no bar", evaluate[string](b, barShows), "")
		place := evaluate[[]float64](b, barAt+"(2)")
		b.do(chromedp.MouseClickXY(place[0], place[1]))
		for _, press := range []struct {
			key string
			bar int
		}{{"", 2}, {kb.ArrowLeft, 1}, {kb.Home, 0}, {kb.ArrowLeft, 0}, {kb.End, 6}, {kb.ArrowLeft, 5}} {
			if press.key != "" {
				b.key(press.key)
			}
			testkit.Equal(t, "text of the bar", evaluate[string](b, barSays), bars[press.bar])
		}
		b.key(kb.Escape)
		testkit.Equal(t, "what is shown after Escape", evaluate[string](b, barShows), "")
	}
	b.key(kb.ArrowLeft)
	shown := evaluate[string](b, `document.querySelector(".figure dd").textContent`)
	chosen, height := evaluate[string](b, barShows), evaluate[float64](b, `document.querySelector(".chart").offsetHeight`)
	s.click(t, "launch", "User-Agent", desktop)
	testkit.Eventually(t, "there are new numbers", func() bool {
		return evaluate[string](b, `document.querySelector(".figure dd").textContent`) != shown
	})
	testkit.Equal(t, "what is shown with new numbers", evaluate[string](b, barShows), chosen)
	testkit.Equal(t, "height", evaluate[float64](b, `document.querySelector(".chart").offsetHeight`), height)
	if !evaluate[bool](b, `document.activeElement.matches(".chart-plot")`) {
		t.Error("the focus went elsewhere")
	}
	b.sees("People", "People per day", "People in the previous 7 days")
	b.at("/dashboard/report?period=7d&show=people")

	plain := s.tab(t, withoutScript).signIn(s)
	plain.page("/dashboard/report?period=7d")
	plain.sees("Bots", "Bots per day")
	if title := evaluate[string](plain, `document.querySelector(".chart title").textContent`); !strings.Contains(title,
		", before: ") {
		t.Errorf("the first bar has the title %q", title)
	}
}
