package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"linkstream/deploy/testengines/enginetest"
)

// filledPages are the pages of a filled system. What is pressed opens what is hidden at first.
var filledPages = []struct{ name, path, press string }{
	{"overview", "/dashboard", "Show as a table"},
	{"links", "/dashboard/links", ""},
	{"search", "/dashboard/links?q=nothing", ""},
	{"link", "/dashboard/links/0/launch", "Show as a table"},
	{"domains", "/dashboard/domains", ""},
	{"domain", "/dashboard/domains/2", "Remove…"},
	{"verified domain", "/dashboard/domains/1", ""},
	{"API settings", "/dashboard/tokens", "Revoke Website"},
	{"account", "/dashboard/account", ""},
	{"missing page", "/dashboard/nothing", ""},
}

// widths are those of a screen on a desk and of a small phone.
var widths = []int64{1280, 360}

// What keeps people from using a page: found by axe-core, by measuring, and by going through it with the keyboard.
func TestDashboardBarriers(t *testing.T) {
	t.Parallel()
	axe := enginetest.AxeCore(t)
	s := filledSystem(t)
	b := s.tab(t)
	b.run("sign-in", func(*testing.T) {
		b.page("/dashboard/sign-in")
		b.passes(axe)
	})
	b.signIn(s)
	for _, p := range filledPages {
		b.run(p.name, func(*testing.T) {
			b.open(p.path)
			if p.press != "" {
				b.press(p.press)
			}
			b.passes(axe)
		})
	}
	b.run("form with problems", func(*testing.T) {
		b.page("/dashboard/links")
		b.fill("Long URL", "ftp://example.com/")
		b.follow("Shorten")
		b.passes(axe)
	})
	b.run("new token", func(*testing.T) {
		b.page("/dashboard/tokens")
		b.fill("Name", "Another")
		b.sees("Create token", "Your new token")
		b.passes(axe)
	})
}

// passes looks for barriers in the page as it is, light and dark, wide and narrow.
func (b *tab) passes(axe string) {
	b.t.Helper()
	b.hasStructure()
	evaluate[*struct{}](b, "(() => {"+axe+"; return null })()")
	for _, width := range widths {
		b.size(width, 900)
		b.fitsWidth()
		b.reachableByKeyboard()
		for _, scheme := range []string{"light", "dark"} {
			b.scheme(scheme)
			b.passesAxe(fmt.Sprintf("%s at %d pixels", scheme, width))
		}
	}
	b.size(widths[0], 900)
	b.scheme("light")
}

// scheme has the page think that the reader prefers "light" or "dark" colours.
func (b *tab) scheme(name string) {
	b.t.Helper()
	call1(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name},
			{Name: "prefers-reduced-motion", Value: "reduce"}}}) // colours that change slowly would be measured half-way
}

func (b *tab) passesAxe(how string) {
	b.t.Helper()
	violations := evaluate[[]string](b, `axe.run(document, { resultTypes: ["violations"] }).then((results) =>
		results.violations.flatMap((rule) => rule.programs.map((node) =>
			rule.id + " (" + rule.impact + "): " + node.html.slice(0, 200) + " " + node.failureSummary)))`)
	for _, violation := range violations {
		b.t.Errorf("%s: %s", how, strings.Join(strings.Fields(violation), " "))
	}
}

// hasStructure requires what a reader finds their way by: a language, a title, one main heading, landmarks.
func (b *tab) hasStructure() {
	b.t.Helper()
	for what, expression := range map[string]string{
		"one h1":                `document.querySelectorAll("h1").length === 1`,
		"a title of its own":    `/^.+ · linkstream$/.test(document.title)`,
		"a language":            `document.documentElement.lang === "en"`,
		"one main":              `document.querySelectorAll("main").length === 1`,
		"a header":              `document.querySelectorAll("body > header").length === 1`,
		"a name for each nav":   `[...document.querySelectorAll("nav")].every((nav) => nav.getAttribute("aria-label"))`,
		"a way past the header": `document.querySelector("a").getAttribute("href") === "#main"`,
	} {
		if !evaluate[bool](b, expression) {
			b.t.Errorf("the page does not have %s", what)
		}
	}
}

// fitsWidth requires that nobody has to scroll sideways.
func (b *tab) fitsWidth() {
	b.t.Helper()
	if over := evaluate[int](b, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
		widest := evaluate[string](b, `[...document.querySelectorAll("main *")].filter((e) =>
			e.getBoundingClientRect().right > innerWidth).map((e) => e.outerHTML.slice(0, 120)).join("\n")`)
		b.t.Errorf("the page is %d pixels too wide:\n%.2000s", over, widest)
	}
}

// focusable is what the keyboard should get to. It is looked up anew each time: parts of a page may be replaced.
const focusable = `[...document.querySelectorAll(
	"a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")]
	.filter((e) => e.checkVisibility({ visibilityProperty: true }) && !e.disabled)`

// focused returns which of them has the focus, -1 if none has, and whether that can be seen.
const focused = `(() => {
	const style = getComputedStyle(document.activeElement);
	return { index: ` + focusable + `.indexOf(document.activeElement),
		seen: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 };
})()`

// reachableByKeyboard goes through the page by Tab and requires that it comes to everything that can be used, and that
// it always shows where it is.
func (b *tab) reachableByKeyboard() {
	b.t.Helper()
	n := evaluate[int](b, focusable+".length")
	evaluate[*struct{}](b, "document.activeElement.blur(), getSelection().collapse(document.body, 0), null")
	reached := map[int]bool{}
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		for range n + 5 {
			if _, err := chromedp.KeyEvent(kb.Tab)(ctx, t); err != nil {
				return err
			}
			focus, err := chromedp.Evaluate[struct {
				Index int  `json:"index"`
				Seen  bool `json:"seen"`
			}](focused)(ctx, t)
			if err != nil {
				return err
			}
			if focus.Index >= 0 && !focus.Seen {
				b.t.Errorf("the focus cannot be seen on %s", b.focusableElement(ctx, t, focus.Index))
			}
			reached[focus.Index] = true
		}
		for i := range n {
			if !reached[i] {
				b.t.Errorf("the keyboard does not reach %s", b.focusableElement(ctx, t, i))
			}
		}
		return nil
	}))
}

func (b *tab) focusableElement(ctx context.Context, t *chromedp.Target, i int) string {
	html, err := chromedp.Evaluate[string](fmt.Sprintf("%s[%d].outerHTML.slice(0, 200)", focusable, i))(ctx, t)
	if err != nil {
		return err.Error()
	}
	return html
}
