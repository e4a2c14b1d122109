package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"linkstream/schema/testkit"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// The tests use pages as people do: what they press and fill in they find by its role and its name, as the browser
// tells them to somebody who cannot see the page, and they press where it is on the screen.

// controls are the roles of what can be used. Chromium's name for the summary of details is one of its own.
var controls = []string{"button", "link", "textbox", "searchbox", "combobox", "checkbox", "radio", "DisclosureTriangle"}

// serve returns the base URL of a server of one page. Of everything else there is nothing.
func serve(t *testing.T, page string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, `<!DOCTYPE html><html lang=en><link rel=icon href="data:,">`, page) // lest it looks for an icon
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// open goes to a page of the dashboard and returns the status of its answer. It returns when the page has loaded.
func (b *tab) open(path string) int {
	b.t.Helper()
	return b.load(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		return navigate(ctx, t, b.base+path)
	}))
}

// load does what leads to another page and returns the status of its answer when it has loaded.
func (b *tab) load(step chromedp.Action[chromedp.Void]) int {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, pageWithin)
	defer cancel()
	response, err := chromedp.RunResponse(ctx, step)
	if err != nil {
		b.t.Fatalf("load page: %v", err)
	}
	return int(response.Status)
}

// page goes to a page of the dashboard and requires that it is answered with 200.
func (b *tab) page(path string) {
	b.t.Helper()
	if status := b.open(path); status != http.StatusOK {
		b.t.Fatalf("%s answers %d: %s", path, status, b.text())
	}
}

// evaluate returns the value of an expression in the page.
func evaluate[T any](b *tab, expression string) T {
	b.t.Helper()
	value, err := tryEvaluate[T](b, expression)
	if err != nil {
		b.t.Fatalf("evaluate %.100s: %v", expression, err)
	}
	return value
}

func tryEvaluate[T any](b *tab, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, pageWithin)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// text returns what the page shows as text, with single blanks.
func (b *tab) text() string {
	b.t.Helper()
	text, err := tryEvaluate[string](b, "document.body.innerText")
	if err != nil {
		b.t.Logf("page without text: %v", err)
	}
	return strings.Join(strings.Fields(text), " ")
}

// shows requires that the page shows all texts, now or in a moment.
func (b *tab) shows(texts ...string) {
	b.t.Helper()
	testkit.SucceedsWithin(b.t, pageWithin, func() error {
		shown := b.text()
		for _, text := range texts {
			if !strings.Contains(shown, text) {
				return fmt.Errorf("no %q in: %s", text, shown)
			}
		}
		return nil
	})
}

// hides requires that the page, as it is now, does not show the text.
func (b *tab) hides(text string) {
	b.t.Helper()
	if shown := b.text(); strings.Contains(shown, text) {
		b.t.Fatalf("%q in: %s", text, shown)
	}
}

// path returns where the page is, without the host.
func (b *tab) path() string {
	b.t.Helper()
	return evaluate[string](b, "location.pathname + location.search")
}

// at requires that the page is at a path.
func (b *tab) at(path string) {
	b.t.Helper()
	if got := b.path(); got != path {
		b.t.Fatalf("at %s, want %s: %s", got, path, b.text())
	}
}

// find returns the one control with that name.
func (b *tab) find(name string) cdp.BackendNodeID {
	b.t.Helper()
	var found cdp.BackendNodeID
	testkit.SucceedsWithin(b.t, pageWithin, func() error {
		ids, err := b.named(name)
		if err != nil {
			return err
		}
		if len(ids) != 1 {
			return fmt.Errorf("%d controls are called %q: %s", len(ids), name, b.text())
		}
		found = ids[0]
		return nil
	})
	return found
}

// named returns the controls with that name.
func (b *tab) named(name string) ([]cdp.BackendNodeID, error) {
	ctx, cancel := context.WithTimeout(b.ctx, pageWithin)
	defer cancel()
	document, err := chromedp.Call(ctx, runtime.Evaluate, runtime.EvaluateParams{Expression: "document"})
	if err != nil {
		return nil, err
	}
	answer, err := chromedp.Call(ctx, accessibility.QueryAXTree,
		accessibility.QueryAXTreeParams{ObjectID: document.Result.ObjectID, AccessibleName: name})
	if err != nil {
		return nil, err
	}
	var ids []cdp.BackendNodeID
	for _, node := range answer.Nodes {
		var role string
		if node.Ignored || node.Role == nil || json.Unmarshal(node.Role.Value, &role) != nil {
			continue
		}
		if slices.Contains(controls, role) {
			ids = append(ids, node.BackendDOMNodeID)
		}
	}
	return ids, nil
}

// click presses the middle of a control with the mouse.
func click(id cdp.BackendNodeID) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, dom.ScrollIntoViewIfNeeded, dom.ScrollIntoViewIfNeededParams{BackendNodeID: id})
		if err != nil {
			return err
		}
		shape, err := cdp.Call(ctx, t, dom.GetContentQuads, dom.GetContentQuadsParams{BackendNodeID: id})
		if err != nil {
			return err
		}
		if len(shape.Quads) == 0 {
			return errors.New("what is to be pressed cannot be seen")
		}
		quad := shape.Quads[0] // x and y of its corners
		x, y := (quad[0]+quad[4])/2, (quad[1]+quad[5])/2
		_, err = chromedp.MouseClickXY(x, y)(ctx, t)
		return err
	})
}

// press presses a control that leads to no other page.
func (b *tab) press(name string) {
	b.t.Helper()
	b.do(click(b.find(name)))
}

// follow presses a link or the button of a form, and returns the status of the page that it leads to.
func (b *tab) follow(name string) int {
	b.t.Helper()
	return b.load(click(b.find(name)))
}

// sees is follow to a page that is answered with 200 and shows the texts.
func (b *tab) sees(control string, texts ...string) {
	b.t.Helper()
	if status := b.follow(control); status != http.StatusOK {
		b.t.Fatalf("%q leads to a page with status %d: %s", control, status, b.text())
	}
	b.shows(texts...)
}

// fill types a text into a field, instead of what it holds.
func (b *tab) fill(name, text string) {
	b.t.Helper()
	b.do(click(b.find(name)), chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		key := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Commands: []string{"selectAll"}}
		if text == "" {
			key.Commands = append(key.Commands, "delete")
		}
		if _, err := cdp.Call(ctx, t, input.DispatchKeyEvent, key); err != nil || text == "" {
			return err
		}
		_, err := cdp.Call(ctx, t, input.InsertText, input.InsertTextParams{Text: text})
		return err
	}))
}

// value returns what a field holds.
func (b *tab) value(name string) string {
	b.t.Helper()
	var value string
	b.must(json.Unmarshal(b.apply(name, "function() { return this.value }"), &value))
	return value
}

// choose picks the first option of a list that has the text in it.
func (b *tab) choose(name, text string) {
	b.t.Helper()
	b.apply(name, fmt.Sprintf(`function() {
		this.value = [...this.options].find((option) => option.text.includes(%q)).value;
		this.dispatchEvent(new Event("change", { bubbles: true }));
	}`, text))
}

// apply calls a function on a control and returns its result as JSON.
func (b *tab) apply(name, function string) []byte {
	b.t.Helper()
	object := call1(b, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: b.find(name)})
	byValue := true
	result := call1(b, runtime.CallFunctionOn, runtime.CallFunctionOnParams{FunctionDeclaration: function,
		ObjectID: object.Object.ObjectID, ReturnByValue: &byValue})
	if result.ExceptionDetails != nil {
		b.t.Fatalf("%q: %s", name, result.ExceptionDetails.Text)
	}
	return result.Result.Value
}

// back goes back as the browser's button does, and returns when the tab is at another page. That may have been kept.
func (b *tab) back() {
	b.t.Helper()
	const where = "document.readyState === 'complete' ? location.href : ''"
	before := evaluate[string](b, where)
	evaluate[*struct{}](b, "history.back(), null")
	testkit.SucceedsWithin(b.t, pageWithin, func() error {
		now, err := tryEvaluate[string](b, where)
		if err == nil && (now == before || now == "") {
			err = fmt.Errorf("the tab is at %s", before)
		}
		return err
	})
}

// cookies returns the cookies of the dashboard, those that scripts cannot see included.
func (b *tab) cookies() []*network.Cookie {
	b.t.Helper()
	return call1(b, network.GetCookies, network.GetCookiesParams{URLs: []string{b.base}}).Cookies
}

// navigate has the tab go to a URL, without waiting for it.
func navigate(ctx context.Context, t *chromedp.Target, url string) error {
	answer, err := cdp.Call(ctx, t, page.Navigate, page.NavigateParams{URL: url})
	if err == nil && answer.ErrorText != "" {
		err = fmt.Errorf("go to %s: %s", url, answer.ErrorText)
	}
	return err
}

// reload loads the page again.
func reload() chromedp.Action[chromedp.Void] { return chromedp.Reload() }
