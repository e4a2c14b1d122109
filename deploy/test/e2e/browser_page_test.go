//go:build engines

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"linkstream/schema/testkit"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// The tests use pages as people do: they find controls by role and accessible name, as a screen reader does, and click
// where the controls are on the screen.

// controls are the roles of the elements that a reader can use. The last two are Chromium's roles of a summary, whose
// details may have a name.
var controls = []string{"button", "link", "textbox", "searchbox", "combobox", "checkbox", "radio",
	"tab", "DisclosureTriangle", "DisclosureTriangleGrouped"}

// serve returns the base URL of a server with a single page.
func serve(t *testing.T, page string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		const noIcon = `<link rel=icon href="data:,">` // otherwise the browser requests one
		fmt.Fprint(w, `<!DOCTYPE html><html lang=en>`, noIcon, page)
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

// load runs a step that leads to another page, waits until it has loaded, and returns its status.
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

// page goes to a page of the dashboard and requires status 200.
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

// text returns the visible text of the page, with runs of white space replaced by one space.
func (b *tab) text() string {
	b.t.Helper()
	text, err := tryEvaluate[string](b, "document.body.innerText")
	if err != nil {
		b.t.Logf("page without text: %v", err)
	}
	return strings.Join(strings.Fields(text), " ")
}

// shows waits until the page shows all texts.
func (b *tab) shows(texts ...string) {
	b.t.Helper()
	testkit.SucceedsWithin(b.t, pageWithin, func() error {
		shown := b.text()
		for _, text := range texts {
			if !strings.Contains(shown, text) {
				return fmt.Errorf("the page does not show %q: %s", text, shown)
			}
		}
		return nil
	})
}

// hides requires that the page does not show the text at the moment.
func (b *tab) hides(text string) {
	b.t.Helper()
	if shown := b.text(); strings.Contains(shown, text) {
		b.t.Fatalf("the page shows %q: %s", text, shown)
	}
}

// path returns the page's URL without the host.
func (b *tab) path() string {
	b.t.Helper()
	return evaluate[string](b, "location.pathname + location.search")
}

// at requires the page's path.
func (b *tab) at(path string) {
	b.t.Helper()
	if got := b.path(); got != path {
		b.t.Fatalf("at %s, want %s: %s", got, path, b.text())
	}
}

// find waits until exactly one control has that name and returns it.
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

// click clicks in the middle of a control.
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
			return errors.New("the control is not visible")
		}
		quad := shape.Quads[0] // x and y of its corners
		x, y := (quad[0]+quad[4])/2, (quad[1]+quad[5])/2
		_, err = chromedp.MouseClickXY(x, y)(ctx, t)
		return err
	})
}

// press clicks a control that does not lead to another page.
func (b *tab) press(name string) {
	b.t.Helper()
	b.do(click(b.find(name)))
}

// follow clicks a link or a form's button and returns the status of the page that it leads to.
func (b *tab) follow(name string) int {
	b.t.Helper()
	return b.load(click(b.find(name)))
}

// sees clicks a control that leads to another page and requires status 200 and the texts.
func (b *tab) sees(control string, texts ...string) {
	b.t.Helper()
	if status := b.follow(control); status != http.StatusOK {
		b.t.Fatalf("%q leads to a page with status %d: %s", control, status, b.text())
	}
	b.shows(texts...)
}

// fill replaces the text of a field.
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

// value returns the text of a field.
func (b *tab) value(name string) string {
	b.t.Helper()
	var value string
	b.must(json.Unmarshal(b.apply(name, "function() { return this.value }"), &value))
	return value
}

// choose selects the first option of a list that contains the text.
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

// back goes back in the history and returns when the tab is at another page, which the browser may have cached.
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

// navigate makes the tab go to a URL and returns at once.
func navigate(ctx context.Context, t *chromedp.Target, url string) error {
	answer, err := cdp.Call(ctx, t, page.Navigate, page.NavigateParams{URL: url})
	if err == nil && answer.ErrorText != "" {
		err = fmt.Errorf("go to %s: %s", url, answer.ErrorText)
	}
	return err
}

// chooseFile chooses a file with this content in the page's field for files.
func (b *tab) chooseFile(name, content string) {
	b.t.Helper()
	path := filepath.Join(b.t.TempDir(), name)
	b.must(os.WriteFile(path, []byte(content), 0o600))
	field := call1(b, runtime.Evaluate, runtime.EvaluateParams{Expression: `document.querySelector("input[type=file]")`})
	call1(b, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: []string{path}, ObjectID: field.Result.ObjectID})
}
