//go:build engines

package e2e_test

import (
	"net/http"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"linkstream/schema/testkit"
)

// effort counts the clicks and keys of a task. Text that is typed or pasted is the same work everywhere, and is free.
type effort struct {
	*tab
	taken int
}

// key presses a key. A letter that the page takes is typed into no field.
func (e *effort) key(key string) {
	e.taken++
	if len(key) > 1 || key < " " {
		e.tab.key(key)
		return
	}
	call1(e.tab, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: key,
		Text: key})
}

func (e *effort) press(name string) {
	e.taken++
	e.tab.press(name)
}

// follow presses a control that leads to another page.
func (e *effort) follow(name string) {
	e.taken++
	if status := e.tab.follow(name); status != http.StatusOK {
		e.t.Fatalf("%q leads to a page with status %d: %s", name, status, e.text())
	}
}

// enter presses Enter, which leads to another page.
func (e *effort) enter() {
	e.taken++
	e.load(chromedp.KeyEvent(kb.Enter))
}

// fill clicks into a field and replaces its text.
func (e *effort) fill(name, text string) {
	e.taken++
	e.tab.fill(name, text)
}

// enterField is a click into a field that offers names: Chromium without a screen waits for its list to be closed.
func (e *effort) enterField(name string) {
	e.taken++
	e.apply(name, "function() { this.focus() }")
}

// TestDashboardEffort does common tasks, each with as few clicks and keys as in the best of other shorteners'
// dashboards, or fewer. Those that stay load no other page.
func TestDashboardEffort(t *testing.T) {
	t.Parallel()
	s := filledSystem(t)
	owner := caller{API: s.api, Token: s.admin(t, "token", "add", s.email)}
	for range 40 {
		owner.Shorten(t, object{"long_url": "https://example.net/batch", "title": "Batch"}).Want(t, http.StatusCreated)
	}
	b := s.tab(t).signIn(s)
	for _, task := range []struct {
		name, path string
		most       int
		stays      bool
		do         func(e *effort)
		shows      string
	}{
		{"shorten and copy a link", "/dashboard", 3, true, func(e *effort) {
			e.key("c")
			e.hasFocus("Destination")
			e.paste("example.org/first")
			e.key(kb.Enter)
		}, "Copied to the clipboard."},
		{"the next one, with an alias", "", 5, true, func(e *effort) {
			e.hasFocus("Create another")
			e.key(kb.Enter)
			e.hasFocus("Destination")
			e.paste("example.org/next")
			e.key(kb.Tab)
			e.paste("next")
			e.key(kb.Enter)
		}, "sho.example/next"},
		{"find a link and its report", "/dashboard/links", 3, false, func(e *effort) {
			e.key("/")
			e.paste("launch")
			e.enter()
			e.follow("Announcement of the first release")
		}, "clicks since the link was created"},
		{"change a target", "/dashboard/links/0/next", 4, true, func(e *effort) {
			e.press("Edit")
			e.hasFocus("Destination")
			e.paste("https://example.org/changed")
			e.press("Save")
		}, "https://example.org/changed"},
		{"a rule for phones in two countries", "/dashboard/links/0/next", 9, true, func(e *effort) {
			e.press("Edit")
			e.press("Targeting rules, variants")
			e.press("Add a rule")
			e.fill("Redirect to", "example.org/phones")
			e.press("Phones")
			e.enterField("Countries")
			e.paste("Austria, Switzerland")
			e.press("Save")
		}, "was saved."},
		{"an expiry", "/dashboard/links/0/next", 4, true, func(e *effort) {
			e.press("Edit")
			e.press("Access password, click limit, expiry")
			e.press("1 week")
			e.press("Save")
		}, "was saved."},
		{"the sources of one country", "/dashboard/report", 2, false, func(e *effort) {
			e.press("Countries")
			e.follow("Germany")
		}, "Country: Germany remove"},
		{"against last year", "/dashboard/report", 2, false, func(e *effort) { e.follow("Year before") }, "year before"},
		{"7 days of a link", "/dashboard/links?q=launch", 2, false, func(e *effort) {
			e.follow("Announcement of the first release")
			e.follow("7 days")
		}, "7 days"},
		{"tag 40 links", "/dashboard/links?q=batch", 5, false, func(e *effort) {
			e.press("Select all on this page")
			e.press("All 40 links of this filter")
			e.fill("Tags to add or remove", "effort")
			e.enter()
		}, "40 links were tagged effort."},
		{"delete a link", "/dashboard/links?q=survey", 2, false, func(e *effort) {
			e.press("Actions for sho.example/survey")
			e.follow("Delete")
		}, "was deleted"},
		{"undo it", "", 1, false, func(e *effort) { e.follow("Undo") }, "is back, with its clicks"},
	} {
		b.run(task.name, func(t *testing.T) {
			if task.path != "" {
				b.page(task.path)
				b.watchesClipboard()
				evaluate[bool](b, "window.stays = true")
			}
			e := &effort{tab: b}
			task.do(e)
			b.shows(task.shows)
			if e.taken > task.most {
				t.Errorf("%d clicks and keys, more than %d", e.taken, task.most)
			}
			t.Logf("%d clicks and keys", e.taken)
			if task.stays {
				testkit.Equal(t, "the page stays", evaluate[bool](b, "window.stays === true"), true)
			}
		})
	}
}
