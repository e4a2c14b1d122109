//go:build engines

package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"linkstream/deploy/tools/engines/enginetest"
	"linkstream/schema/testkit"
)

// key presses a key where the focus is.
func (b *tab) key(keys string, modifiers ...chromedp.Modifier) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(keys, chromedp.KeyModifiers(modifiers...)))
}

// paste inserts a text where the focus is.
func (b *tab) paste(text string) {
	b.t.Helper()
	call1(b, input.InsertText, input.InsertTextParams{Text: text})
}

// hasFocus waits until the element with the focus is named so, by its label, its text or its ID.
func (b *tab) hasFocus(name string) {
	b.t.Helper()
	testkit.SucceedsWithin(b.t, pageWithin, func() error {
		got, err := tryEvaluate[string](b, `(() => {
			const e = document.activeElement;
			return e.labels?.[0]?.textContent || e.ariaLabel || e.id || e.textContent.trim();
		})()`)
		if err == nil && got != name {
			err = fmt.Errorf("the focus is on %q, want %q", got, name)
		}
		return err
	})
}

// TestDashboardListOfLinks requires that the list shows links rather than forms, and that it can be used by keyboard.
func TestDashboardListOfLinks(t *testing.T) {
	t.Parallel()
	s := filledSystem(t)
	b := s.tab(t).signIn(s)
	b.run("many links fit on a screen", func(t *testing.T) {
		for _, screen := range []struct{ width, height, rows int64 }{{1440, 900, 10}, {768, 1024, 12}, {375, 812, 6}} {
			b.size(screen.width, screen.height)
			b.page("/dashboard/links")
			rows := evaluate[[]struct{ Bottom, Height float64 }](b, `[...document.querySelectorAll("tbody tr")].map((row) => {
				const box = row.getBoundingClientRect();
				return { Bottom: box.bottom, Height: box.height };
			})`)
			visible := int64(0)
			for i, row := range rows {
				if row.Height > 60 {
					t.Errorf("at %d pixels row %d is %v high", screen.width, i, row.Height)
				}
				if row.Bottom <= float64(screen.height) {
					visible++
				}
			}
			if visible < screen.rows {
				t.Errorf("%d rows are visible at %d×%d, want %d", visible, screen.width, screen.height, screen.rows)
			}
			if screen.width >= 768 {
				display := evaluate[string](b, `getComputedStyle(document.querySelector("tbody tr")).display`)
				testkit.Equal(t, "display of rows", display, "table-row")
			}
		}
		b.size(1280, 900)
	})
	b.run("the key is a letter in fields, not taken from the browser, and can be switched off", func(t *testing.T) {
		opens := func(want bool) {
			t.Helper()
			if want {
				b.hasFocus("Destination")
			} else if evaluate[bool](b, `pane.open || pane.ariaBusy === "true"`) {
				t.Error("the form opens")
			}
		}
		b.page("/dashboard/links")
		b.key("c", chromedp.ModifierCtrl)
		opens(false)
		b.fill("Search links", "")
		b.key("c")
		opens(false)
		if text := b.value("Search links"); text != "c" {
			t.Errorf("the field has %q", text)
		}
		b.press("More")
		b.press("Switch shortcuts off")
		b.page("/dashboard/links")
		b.key("c")
		opens(false)
		b.press("More")
		b.press("Switch shortcuts on")
		b.page("/dashboard/links")
		b.key("c")
		opens(true)
	})
	b.run("keys move a cursor over rows, which they select and open", func(t *testing.T) {
		b.page("/dashboard/links")
		selected := func(want string) {
			t.Helper()
			b.shows(want + " selected")
		}
		b.key("j")
		b.key("x")
		b.key(kb.ArrowDown)
		b.key("x")
		selected("2")
		b.key("k")
		b.key("x")
		selected("1")
		b.load(chromedp.KeyEvent(kb.Enter))
		b.page("/dashboard/links")
		b.key("g")
		b.load(chromedp.KeyEvent("r"))
		if path := evaluate[string](b, "location.pathname"); path != "/dashboard/report" {
			t.Errorf("the page is %s", path)
		}
		b.key("?")
		b.shows("Go to the report")
		b.key(kb.Escape)
	})
	b.run("a menu has the keys of menus", func(t *testing.T) { b.usesMenu(t) })
	b.run("an action keeps the place", func(t *testing.T) { b.keepsPlace(t) })
}

// usesMenu opens the menu of a link and moves in it.
func (b *tab) usesMenu(t *testing.T) {
	b.page("/dashboard/links")
	const name = "Actions for sho.example/launch"
	evaluate[*struct{}](b, `document.querySelector("[aria-label='`+name+`']").focus(), null`)
	for _, step := range []struct{ key, focus string }{
		{kb.ArrowDown, "Open"}, {kb.ArrowDown, "Copy"}, {kb.ArrowDown, "QR code"}, {kb.End, "Delete"},
		{kb.ArrowDown, "Open"}, {kb.ArrowUp, "Delete"}, {kb.ArrowUp, "Switch off"}, {kb.Home, "Open"}, {kb.Escape, name}} {
		b.key(step.key)
		b.hasFocus(step.focus)
	}
	if open := evaluate[int](b, `document.querySelectorAll("details.menu[open]").length`); open > 0 {
		t.Errorf("%d menus are open", open)
	}
	b.press(name)
	b.press("Filter")
	open := evaluate[string](b, `[...document.querySelectorAll("details.menu[open]")].map((menu) => menu.id).join()`)
	testkit.Equal(t, "open menus", open, "filter")
}

// keepsPlace switches off, back on and deletes a link at the end of the list.
func (b *tab) keepsPlace(t *testing.T) {
	const alias, name = "newsletter", "Actions for sho.example/newsletter"
	b.size(1280, 500)
	defer b.size(1280, 900)
	b.page("/dashboard/links")
	top := func() float64 {
		return evaluate[float64](b, `document.querySelector("a[href$='/`+alias+`']").getBoundingClientRect().top`)
	}
	focused := func() string {
		return evaluate[string](b, `document.activeElement.querySelector("tr .alias")?.textContent ??
			document.activeElement.outerHTML.slice(0, 100)`)
	}
	b.press(name)
	before := top()
	b.sees("Switch off", "is switched off", "Undo")
	if after := top(); after < before-2 || after > before+2 {
		t.Errorf("the row went from %v to %v", before, after)
	}
	if row := focused(); row != alias {
		t.Errorf("the focus is on %s", row)
	}
	b.sees("Undo", "is switched on")
	if row := focused(); row != alias {
		t.Errorf("the focus is on %s after Undo", row)
	}
	b.press(name)
	evaluate[*struct{}](b, `document.querySelector("[open] .items .bad").focus(), null`)
	b.load(chromedp.KeyEvent(kb.Enter))
	b.shows("was deleted")
	if row := focused(); row != "handbook" { // the next one
		t.Errorf("the focus is on %s after the link was deleted", row)
	}
	b.sees("Undo", "is back, with its clicks")
	if row := focused(); row != alias {
		t.Errorf("the focus is on %s after Undo", row)
	}
}

// TestDashboardManyLinks deletes more links than are deleted without a question, and undoes it.
func TestDashboardManyLinks(t *testing.T) {
	t.Parallel()
	s := filledSystem(t)
	b := s.tab(t).signIn(s)
	var urls strings.Builder
	for i := range 120 {
		fmt.Fprintf(&urls, "https://example.org/many/%d\n", i)
	}
	b.page("/dashboard/bulk")
	b.fill("Destinations, one per line", urls.String())
	b.sees("Create links", "120 links are ready")
	b.page("/dashboard/links?q=many/")
	b.press("Select all on this page")
	b.press("All 120 links of this filter")
	b.sees("Delete selected links", "Delete 120 links?", "The trash keeps them for 30 days")
	b.passes(enginetest.AxeCore(t))
	b.sees("Keep them", "120 links with “many/”")
	b.press("Select all on this page")
	b.press("All 120 links of this filter")
	b.sees("Delete selected links", "Delete 120 links?")
	title := b.placeOf("h1")
	b.sees("Delete 120 links", "120 links were deleted.")
	testkit.Equal(t, "place of the title with a notice", b.placeOf("h1"), title)
	b.sees("Undo", "120 links are back, with their clicks.", "120 links with “many/”")
}

// placeOf returns where on the page an element begins.
func (b *tab) placeOf(selector string) float64 {
	b.t.Helper()
	return evaluate[float64](b, `document.querySelector("`+selector+`").getBoundingClientRect().top + scrollY`)
}

// TestDashboardListWithoutScript requires that a menu works and that the browser scrolls to the row of an action.
func TestDashboardListWithoutScript(t *testing.T) {
	t.Parallel()
	s := filledSystem(t)
	b := s.tab(t, withoutScript).signIn(s)
	b.size(1280, 500)
	b.page("/dashboard/links")
	b.press("Actions for sho.example/newsletter")
	b.sees("Switch off", "is switched off")
	if row := evaluate[string](b, `document.querySelector("tr:target .alias")?.textContent`); row != "newsletter" {
		t.Errorf("the address leads to %q", row)
	}
	if y := evaluate[float64](b, `document.querySelector("tr:target").getBoundingClientRect().top`); y < 0 || y > 450 {
		t.Errorf("the row is at %v", y)
	}
}

// TestDashboardCopyOverPlainHTTP copies without navigator.clipboard, which browsers hide from plain http at other
// machines' addresses.
func TestDashboardCopyOverPlainHTTP(t *testing.T) {
	t.Parallel()
	s := filledSystem(t)
	b := s.tab(t, func(b *tab) {
		call1(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
			Source: `Object.defineProperty(Navigator.prototype, "clipboard", { get: () => undefined })`})
	}).signIn(s)
	b.page("/dashboard/links")
	if evaluate[bool](b, "!!navigator.clipboard") {
		t.Fatal("the page has a clipboard, so this test proves nothing")
	}
	// The clipboard itself belongs to all tabs, of other tests, too.
	evaluate[*struct{}](b, `addEventListener("copy", ({target}) => {
		window.copied = target.value.slice(target.selectionStart, target.selectionEnd);
	}), null`)
	b.press("Copy sho.example/launch")
	b.shows("Copied")
	if text := evaluate[string](b, "window.copied"); text != "https://sho.example/launch" {
		t.Errorf("%q is copied", text)
	}
}
