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

// filledPages are the pages of a filled system. press is a control that opens hidden content.
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

// widths are those of a desktop screen and of a small phone.
var widths = []int64{1280, 360}

// TestDashboardAccessibility checks the pages with axe-core, measures them, and goes through them by keyboard.
func TestDashboardAccessibility(t *testing.T) {
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
	b.run("form with errors", func(*testing.T) {
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

// passes checks the current page, light and dark, wide and narrow.
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

// scheme emulates a reader's preference for "light" or "dark" colours.
func (b *tab) scheme(name string) {
	b.t.Helper()
	call1(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name},
			{Name: "prefers-reduced-motion", Value: "reduce"}}}) // otherwise colours are measured while they change
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

// hasStructure requires what screen readers navigate by: a language, a title, one main heading, landmarks.
func (b *tab) hasStructure() {
	b.t.Helper()
	for what, expression := range map[string]string{
		"one h1":                 `document.querySelectorAll("h1").length === 1`,
		"a title of its own":     `/^.+ · linkstream$/.test(document.title)`,
		"a language":             `document.documentElement.lang === "en"`,
		"one main":               `document.querySelectorAll("main").length === 1`,
		"a header":               `document.querySelectorAll("body > header").length === 1`,
		"a name for each nav":    `[...document.querySelectorAll("nav")].every((nav) => nav.getAttribute("aria-label"))`,
		"a link past the header": `document.querySelector("a").getAttribute("href") === "#main"`,
	} {
		if !evaluate[bool](b, expression) {
			b.t.Errorf("the page does not have %s", what)
		}
	}
}

// fitsWidth requires that the page is not wider than the window.
func (b *tab) fitsWidth() {
	b.t.Helper()
	if over := evaluate[int](b, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
		widest := evaluate[string](b, `[...document.querySelectorAll("main *")].filter((e) =>
			e.getBoundingClientRect().right > innerWidth).map((e) => e.outerHTML.slice(0, 120)).join("\n")`)
		b.t.Errorf("the page is %d pixels too wide:\n%.2000s", over, widest)
	}
}

// focusable are the elements that the keyboard must reach. It is evaluated each time, because scripts may replace parts of
// the page.
const focusable = `[...document.querySelectorAll(
	"a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")]
	.filter((e) => e.checkVisibility({ visibilityProperty: true }) && !e.disabled)`

// focused returns the index of the focused element, -1 if there is none, and whether the focus is visible.
const focused = `(() => {
	const style = getComputedStyle(document.activeElement);
	return { index: ` + focusable + `.indexOf(document.activeElement),
		visible: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 };
})()`

// reachableByKeyboard presses Tab until it has gone through the page. It requires that each element that can be used gets
// the focus, and that the focus is visible.
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
				Index   int  `json:"index"`
				Visible bool `json:"visible"`
			}](focused)(ctx, t)
			if err != nil {
				return err
			}
			if focus.Index >= 0 && !focus.Visible {
				b.t.Errorf("the focus is not visible on %s", b.focusableElement(ctx, t, focus.Index))
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
