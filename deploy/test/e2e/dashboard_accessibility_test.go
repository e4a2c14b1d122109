//go:build engines

package e2e_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"linkstream/deploy/tools/engines/enginetest"
)

// filledPages are the pages of a filled system. press is a control that opens hidden content.
var filledPages = []struct{ name, path, press string }{
	{"overview", "/dashboard", "Show as a table"},
	{"links", "/dashboard/links", ""},
	{"menu of a link", "/dashboard/links", "Actions for sho.example/launch"},
	{"filter", "/dashboard/links?state=on&sort=-clicks", "Filter 1"},
	{"more", "/dashboard/links", "More"},
	{"new link in a dialog", "/dashboard/links", "Create link"},
	{"selected links", "/dashboard/links", "Select all on this page"},
	{"new link", "/dashboard/links/new", "Title, tags, expiry, campaign"},
	{"trash", "/dashboard/trash", ""},
	{"search", "/dashboard/links?q=nothing", ""},
	{"link", "/dashboard/links/0/launch", "Show as a table"},
	{"edit", "/dashboard/links/0/launch/edit", ""},
	{"tags", "/dashboard/tags", ""},
	{"tag", "/dashboard/tags/newsletter", "Delete…"},
	{"report", "/dashboard/report?device=mobile&totals=show", "Show as a table"},
	{"QR code", "/dashboard/links/0/launch/qr", ""},
	{"shared reports", "/dashboard/shares", ""},
	{"many links", "/dashboard/bulk", ""},
	{"domains", "/dashboard/domains", ""},
	{"domain", "/dashboard/domains/2", "Remove…"},
	{"verified domain", "/dashboard/domains/1", ""},
	{"API tokens", "/dashboard/tokens", "Revoke Website"},
	{"webhooks", "/dashboard/webhooks", ""},
	{"new webhook", "/dashboard/webhooks/new", ""},
	{"webhook", "/dashboard/webhooks/1", "Rotate the secret"},
	{"account", "/dashboard/account", ""},
	{"missing page", "/dashboard/nothing", ""},
}

// longURL does not fit into any column.
var longURL = "https://example.org/" + strings.Repeat("a-path-that-goes-on/", 30)

// widths are a laptop's and a small phone's, at which axe-core checks pages. layoutWidths are all others at
// which pages are measured: the layout changes between them.
var (
	widths       = []int64{1440, 320}
	layoutWidths = []int64{1920, 870, 768, 650, 375}
)

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
	b.run("new link", func(*testing.T) {
		b.page("/dashboard/links/new")
		b.fill("Destination", "www.example.org/"+strings.Repeat("a-path-that-goes-on-and-on/", 70))
		b.fill("Alias optional", "a-link-to-a-long-url")
		b.press("Title, tags, expiry, campaign")
		b.fill("Title optional", "A title that is as long as titles are, and not a word longer")
		b.fill("Tags optional", "spring-sale newsletter print poster a-tag-that-is-as-long-as-can-be")
		b.choose("Domain", "go.example.org")
		b.sees("Create link", "Your link is ready", "https://go.example.org/a-link-to-a-long-url")
		b.passes(axe)
		b.page("/dashboard/links/1/a-link-to-a-long-url")
		if y := evaluate[float64](b, `document.querySelector(".figures").getBoundingClientRect().top`); y > 700 {
			t.Errorf("a long URL moves the numbers down to %v", y)
		}
		b.press("Show the whole destination")
		b.fits()
		for _, period := range []string{"2026-01-01", "2025-01-01"} {
			b.page("/dashboard/links/0/launch?from=" + period)
			b.fits()
		}
	})
	title := "" // where the first one stands
	for _, p := range filledPages {
		b.run(p.name, func(*testing.T) {
			b.size(widths[1], 900)
			b.open(p.path)
			b.staysInPlace()
			b.size(widths[0], 900)
			b.open(p.path)
			b.staysInPlace()
			at := evaluate[string](b, `(() => { const at = document.querySelector("h1").getBoundingClientRect();
				return Math.round(at.left) + ", " + Math.round(at.top) })()`)
			if title = cmp.Or(title, at); at != title && p.name != "missing page" { // which is in the middle
				t.Errorf("the title of %s is at %s, not %s", p.path, at, title)
			}
			if p.press != "" {
				b.press(p.press)
			}
			b.passes(axe)
		})
	}
	b.run("drawer", func(*testing.T) {
		b.page("/dashboard/links/0/launch")
		b.press("Edit")
		b.shows("Edit the link")
		b.press("Access password, click limit, expiry")
		b.passes(axe)
	})
	b.run("keyboard shortcuts", func(*testing.T) {
		b.page("/dashboard/links")
		b.key("?")
		b.shows("Go to the report")
		b.passes(axe)
	})
	b.run("form with errors", func(*testing.T) {
		b.page("/dashboard/links")
		b.press("Create link")
		b.fill("Destination", "ftp://example.com/")
		b.press("Create link")
		b.shows("Please correct the marked fields.")
		b.passes(axe)
	})
	b.run("many links with errors", func(*testing.T) {
		b.page("/dashboard/bulk")
		b.fill("Destinations, one per line", longURL+" an-alias-of-20-signs\nnothing")
		b.sees("Create links", "1 link is ready")
		b.passes(axe)
	})
	b.run("import", func(*testing.T) {
		b.page("/dashboard/import")
		b.passes(axe)
		b.chooseFile("links.csv", "alias,long_url,title,tags,domain,visits\n"+
			"import-1,"+longURL+",A title,one two,old.example.org,41837613\nX Y,nothing,,,,\n")
		b.sees("Upload and check", "Ready to import")
		b.passes(axe)
		b.sees("Import 1 link", "was imported")
		b.passes(axe)
	})
	b.run("new token", func(*testing.T) {
		b.page("/dashboard/tokens")
		b.fill("Name", "Another")
		b.sees("Create token", "Your new token")
		b.passes(axe)
	})
	b.run("delivery and secret of a webhook", func(*testing.T) {
		b.page("/dashboard/webhooks/1")
		b.shows("webhook.test", "204 in 87 ms")
		b.page(evaluate[string](b, `document.querySelector("#deliveries th a").getAttribute("href")`))
		b.shows("Payload")
		b.passes(axe)
		b.page("/dashboard/webhooks/1")
		b.press("Rotate the secret")
		b.sees("Rotate it", "The new secret")
		b.passes(axe)
	})
	b.run("shared report", func(*testing.T) {
		b.page("/dashboard/links/0/launch")
		b.press("Share report")
		b.shows("Share the report of sho.example/launch")
		b.passes(axe)
		b.press("Share")
		b.shows("The report is shared")
		b.passes(axe)
		b.page("/dashboard/shares")
		b.press("Revoke the report of sho.example/launch")
		b.passes(axe)
		b.page("/dashboard/shares/new?hash=launch")
		b.passes(axe)
		b.fill("Password optional", "open sesame")
		b.sees("Share", "The report is shared")
		b.follow("Open the report")
		b.passes(axe)
		b.fill("Password", "open sesame")
		b.sees("Show report", "Clicks per day")
		b.passes(axe)
	})
}

// passes checks the current page, light and dark, wide and narrow, and with text of twice the size.
func (b *tab) passes(axe string) {
	b.t.Helper()
	b.hasStructure()
	evaluate[*struct{}](b, "(() => {"+axe+"; return null })()")
	for _, width := range widths {
		b.size(width, 900)
		b.fitsWidth()
		b.scheme("light")
		light := fmt.Sprintf("light at %d pixels", width)
		b.passesAxe("document", light, `rules: { "target-size": { enabled: !`+openMenu+` } }`)
		if evaluate[bool](b, openMenu+" !== null") { // it hides parts of what is behind it
			b.passesAxe(openMenu, light, `runOnly: ["target-size"]`)
		}
		b.scheme("dark")
		b.passesAxe("document", fmt.Sprintf("dark at %d pixels", width), `runOnly: ["color-contrast"]`) // all that differs
	}
	b.reachableByKeyboard()
	b.scheme("light")
	b.fits()
	b.reachableByKeyboard()
	b.hasHierarchy()
	b.zooms()
}

// staysInPlace requires that nothing moves while the page loads (Cumulative Layout Shift).
func (b *tab) staysInPlace() {
	b.t.Helper()
	if moved := evaluate[float64](b, `new Promise((done) => {
		let moved = 0;
		new PerformanceObserver((list) => {
			for (const shift of list.getEntries()) moved += shift.hadRecentInput ? 0 : shift.value;
		}).observe({ type: "layout-shift", buffered: true });
		setTimeout(() => done(moved), 100);
	})`); moved > 0.02 {
		b.t.Errorf("the page has moved by %v", moved)
	}
}

// hasHierarchy requires at most five sizes of text, with the size of figures, and one primary button.
func (b *tab) hasHierarchy() {
	b.t.Helper()
	if sizes := evaluate[[]string](b, `[...new Set([...document.querySelectorAll("body *")].filter((e) =>
		e.checkVisibility() && [...e.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
		.map((e) => getComputedStyle(e).fontSize))]`); len(sizes) > 5 {
		b.t.Errorf("text has the sizes %v", sizes)
	}
	if primary := evaluate[[]string](b, `[...document.querySelectorAll("main .button:not(.quiet, .danger)")]
		.filter((e) => e.checkVisibility()).map((e) => e.textContent)`); len(primary) > 1 {
		b.t.Errorf("the primary buttons are %q", primary)
	}
}

// zooms requires that a phone with text of twice the size needs no sideways scrolling (WCAG 1.4.4, 1.4.10).
func (b *tab) zooms() {
	b.t.Helper()
	b.size(375, 812)
	out := evaluate[[]string](b, `(() => {
		document.documentElement.style.fontSize = "200%";
		const clipped = (e) => e !== document.body &&
			(getComputedStyle(e).overflowX !== "visible" || clipped(e.parentElement));
		const out = document.documentElement.scrollWidth > innerWidth ? [...document.querySelectorAll("body *")].filter((e) =>
			e.checkVisibility() && !clipped(e.parentElement) && e.getBoundingClientRect().right > innerWidth + 1)
			.map((e) => e.outerHTML.slice(0, 120)) : [];
		document.documentElement.style.fontSize = "";
		return out;
	})()`)
	if len(out) > 0 {
		b.t.Errorf("with large text the page is too wide: %.1500q", out)
	}
	b.size(widths[0], 900)
}

// fits measures the page at all widths.
func (b *tab) fits() {
	b.t.Helper()
	for _, width := range layoutWidths {
		b.size(width, 900)
		b.fitsWidth()
	}
	b.size(widths[0], 900)
}

// TestDashboardForeignTexts has a title that runs from right to left, and the text spacing that WCAG 1.4.12 asks for.
func TestDashboardForeignTexts(t *testing.T) {
	t.Parallel()
	s := startStandalone(t)
	s.owner().Link(t, object{"long_url": "https://example.org/", "custom_alias": "arabic", "title": "عنوان قصير"})
	b := s.tab(t).signIn(s)
	for path, texts := range map[string]string{"/dashboard/links": ".title", "/dashboard/links/0/arabic": "h1"} {
		b.page(path)
		b.shows("عنوان قصير")
		if left := evaluate[float64](b, `(() => {
			const e = document.querySelector("main `+texts+`:has(bdi)"), text = document.createRange();
			text.selectNodeContents(e.querySelector("bdi"));
			return text.getBoundingClientRect().left - e.parentElement.getBoundingClientRect().left;
		})()`); left > 60 {
			t.Errorf("%s: the title is %v from the left edge", path, left)
		}
	}
	for _, path := range []string{"/dashboard", "/dashboard/links", "/dashboard/links/0/arabic",
		"/dashboard/links/0/arabic?browser=Samsung+Browser&referrer=a-long-name.news.example.org&" +
			"campaign=newsletter+%2F+email+%2F+spring&os=Windows"} {
		b.page(path)
		evaluate[bool](b, `(() => {
			const spaced = new CSSStyleSheet();
			spaced.replaceSync("* { line-height: 1.5 !important; letter-spacing: .12em !important; " +
				"word-spacing: .16em !important; } p { margin-bottom: 2em !important; }");
			return document.adoptedStyleSheets.push(spaced) > 0;
		})()`)
		for _, width := range slices.Concat(widths, layoutWidths) {
			b.size(width, 812)
			b.fitsWidth()
		}
	}
}

// scheme emulates a reader's preference for "light" or "dark" colours.
func (b *tab) scheme(name string) {
	b.t.Helper()
	call1(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name},
			{Name: "prefers-reduced-motion", Value: "reduce"}}}) // otherwise colours are measured while they change
}

// openMenu is the menu that is open, null without one.
const openMenu = `document.querySelector("main .menu[open]")`

// passesAxe runs axe-core with options on an element.
func (b *tab) passesAxe(element, how, options string) {
	b.t.Helper()
	violations := evaluate[[]string](b, `axe.run(`+element+`,
		{ resultTypes: ["violations"], `+options+` }).then((results) =>
		results.violations.flatMap((rule) => rule.nodes.map((node) =>
			rule.id + " (" + rule.impact + "): " + node.html.slice(0, 200) + " " + node.failureSummary)))`)
	for _, violation := range violations {
		b.t.Errorf("%s: %s", how, strings.Join(strings.Fields(violation), " "))
	}
}

// hasStructure requires what screen readers navigate by: a language, a title, one main heading, landmarks.
func (b *tab) hasStructure() {
	b.t.Helper()
	for what, expression := range map[string]string{
		"less than 40 KiB":       `performance.getEntriesByType("navigation")[0].decodedBodySize < 40 * 1024`,
		"one h1":                 `document.querySelectorAll("main h1").length === 1`,
		"a title of its own":     `/^.+ · linkstream$/.test(document.title)`,
		"a language":             `document.documentElement.lang === "en"`,
		"one main":               `document.querySelectorAll("main").length === 1`,
		"a header":               `document.querySelectorAll("body > header").length === 1`,
		"a name for each nav":    `[...document.querySelectorAll("nav")].every((nav) => nav.getAttribute("aria-label"))`,
		"a link past the header": `document.querySelector("body > a").getAttribute("href") === "#main"`,
	} {
		if !evaluate[bool](b, expression) {
			b.t.Errorf("the page does not have %s", what)
		}
	}
}

// crowded are texts that are not whole, or that cover another, if all clicks were tens of millions.
const crowded = `(() => {
	const wrong = [], say = (what, e) => wrong.push(what + ": " + e.outerHTML.slice(0, 150));
	const changed = [...document.querySelectorAll(
		"main .number:not(th), main .figure dd:first-of-type, .ranking td:last-child, .chart-scroll td")].map((e) =>
		[e.firstElementChild ?? e, (e.firstElementChild ?? e).textContent]);
	for (const [e] of changed) e.textContent = "41,837,613";
	const over = document.documentElement.scrollWidth - innerWidth;
	if (over > 0) {
		wrong.push("the page is " + over + " pixels too wide");
		const clipped = (e) => e !== document.body &&
			(getComputedStyle(e).overflowX !== "visible" || clipped(e.parentElement));
		for (const e of document.querySelectorAll("body *"))
			if (e.checkVisibility() && e.getBoundingClientRect().right > innerWidth && !clipped(e.parentElement))
				say("it reaches out", e);
	}
	const box = (e) => {
		const range = document.createRange();
		range.selectNodeContents(e);
		return range.getBoundingClientRect();
	};
	for (const [e] of changed) {
		const text = box(e), room = e.closest("td, .figure").getBoundingClientRect();
		const high = Math.max(60, 1.5 * parseFloat(getComputedStyle(e).lineHeight)); // of a figure on a wall
		if (text.width > 0 && (text.left < room.left - 1 || text.right > room.right + 1 || text.height > high))
			say("it is cut off", e);
	}
	for (const e of document.querySelectorAll("main .short .alias"))
		if (e.getClientRects().length > 1) say("it is broken", e);
		else if (box(e).right > e.closest("td, th").getBoundingClientRect().right + 1) say("it is cut off", e);
	for (const e of document.querySelectorAll("main td .problem")) if (box(e).height > 100) say("it is squeezed", e);
	const labels = [...document.querySelectorAll(".chart-plot text")].map((e) => [e, e.getBoundingClientRect()])
		.filter(([, at]) => at.width > 0).sort(([, a], [, b]) => a.left - b.left);
	labels.forEach(([e, at], i) => {
		if (i > 0 && labels[i - 1][1].right + 2 > at.left) say("it covers the label before", e);
	});
	changed.forEach(([e, text]) => { e.textContent = text; });
	return wrong.join("\n");
})()`

// fitsWidth requires that the page is not wider than the window, and that numbers, aliases and labels are whole.
func (b *tab) fitsWidth() {
	b.t.Helper()
	if wrong := evaluate[string](b, crowded); wrong != "" {
		b.t.Errorf("at %d pixels: %.2000s", evaluate[int](b, "innerWidth"), wrong)
	}
}

// focusable are the elements that the Tab key must reach. Countries of the map are reached by the list of countries,
// and tabs by the arrow keys.
const focusable = `((listed) => [...document.querySelectorAll(
	"a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")]
	.filter((e) => e.checkVisibility({ visibilityProperty: true }) && !e.disabled && !listed(e) &&
		(e.closest("dialog") || !document.querySelector("dialog[open]"))))((e) =>
			e.matches("[role=tab][aria-selected=false]") || e.closest(".map") &&
			document.querySelector(".ranking button[name=country][value='" +
				new URL(e.href.baseVal, location).searchParams.get("country") + "']"))`

// focused notes that the focused element was reached. It returns the element if its focus is not visible, "" otherwise.
const focused = `(() => {
	unreached.delete(document.activeElement);
	const style = getComputedStyle(document.activeElement);
	const visible = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
	return visible || document.activeElement === document.body ? "" : document.activeElement.outerHTML.slice(0, 200);
})()`

// reachableByKeyboard presses Tab until it has gone through the page. It requires that each element that can be used
// gets the focus, and that the focus is visible. Elements that scripts replace meanwhile do not count.
func (b *tab) reachableByKeyboard() {
	b.t.Helper()
	n := evaluate[int](b, "(window.unreached = new Set("+focusable+")).size")
	// A field of a date has at most eight parts, each of which takes the focus.
	parts := 8 * evaluate[int](b, `document.querySelectorAll("input[type^=date]").length`)
	evaluate[*struct{}](b, "document.activeElement.blur(), getSelection().collapse(document.body, 0), null")
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		for range n + parts + 5 {
			if _, err := chromedp.KeyEvent(kb.Tab)(ctx, t); err != nil {
				return err
			}
			invisible, err := chromedp.Evaluate[string](focused)(ctx, t)
			if err != nil {
				return err
			}
			if invisible != "" {
				b.t.Errorf("the focus is not visible on %s", invisible)
			}
		}
		return nil
	}))
	const rest = "[...unreached].filter((e) => e.isConnected).map((e) => e.outerHTML.slice(0, 200))"
	for _, element := range evaluate[[]string](b, rest) {
		b.t.Errorf("the keyboard does not reach %s", element)
	}
}
