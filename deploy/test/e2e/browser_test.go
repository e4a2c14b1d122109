//go:build engines

package e2e_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"linkstream/deploy/tools/engines/enginetest"
	"linkstream/schema/testkit"
)

// chromium is the browser that all tests share, with a profile per tab. It is started for the first test.
var chromium struct {
	once sync.Once
	ctx  context.Context
	end  context.CancelFunc
	err  error
}

// startChromium starts the shared browser. It resolves no host except this machine's, whatever a page requests.
func startChromium(t *testing.T) context.Context {
	t.Helper()
	found := enginetest.Chromium(t)
	chromium.once.Do(func() {
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(found.Path), chromedp.Env(found.Env...),
			chromedp.Flag("headless", "new"), chromedp.DisableGPU, chromedp.Flag("disable-component-update", true),
			chromedp.Flag("disable-quic", true), chromedp.Flag("disable-features", "Translate,MediaRouter,OptimizationHints"),
			chromedp.Flag("lang", "en-GB"), chromedp.Flag("accept-lang", "en-GB"),
			chromedp.Flag("host-resolver-rules", "MAP "+targetHost+" 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"))
		// Without the test's context: the browser serves other tests, too.
		allocator, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, cancel := chromedp.NewContext(allocator)
		chromium.ctx, chromium.end = ctx, func() {
			closing, stop := context.WithTimeout(ctx, pageWithin)
			_ = chromedp.Cancel(closing) // lets it finish writing to its folder; if it does not end, it is killed
			stop()
			cancel()
			endAllocator()
		}
		chromium.err = chromedp.Do(ctx)
	})
	if chromium.err != nil {
		t.Fatalf("start %v: %v", found, chromium.err)
	}
	return chromium.ctx
}

// endChromium stops the shared browser, if it was started.
func endChromium() {
	if chromium.end != nil {
		chromium.end()
	}
}

// tab is a page in a new profile, without cookies and caches of other tests.
type tab struct {
	t    *testing.T
	base string // of the dashboard
	ctx  context.Context

	mu      sync.Mutex
	hosts   []string        // hosts that pages may send requests to
	faults  []string        // what pages did wrong
	visited map[string]bool // URLs of pages
}

// canary is a function in every page. Only injected code calls it.
const canary = "canary"

// pageWithin bounds how long a test waits for a page.
const pageWithin = testkit.Patience

// tab opens a tab of the dashboard. Errors of its pages, violations of their content security policy and requests to
// other hosts fail the test.
func (s *system) tab(t *testing.T, settings ...func(*tab)) *tab {
	t.Helper()
	b := newTab(t, s.api, settings...)
	t.Cleanup(func() {
		for _, fault := range b.takeFaults() {
			t.Error(fault)
		}
	})
	return b
}

// run runs a subtest on the tab in its current state.
func (b *tab) run(name string, test func(t *testing.T)) {
	b.t.Helper()
	outer := b.t
	defer func() { b.t = outer }()
	outer.Run(name, func(t *testing.T) {
		b.t = t
		test(t)
	})
}

func newTab(t *testing.T, base string, settings ...func(*tab)) *tab {
	t.Helper()
	shared := startChromium(t)
	b := &tab{t: t, base: base, hosts: []string{address(base)}, visited: map[string]bool{}}
	ctx, cancel := chromedp.NewContext(shared, chromedp.WithNewBrowserContext(), chromedp.WithListener(b.observe))
	b.ctx = ctx
	t.Cleanup(cancel)
	b.must(chromedp.Do(ctx)) // without a deadline, which would end the tab
	call1(b, audits.Enable, cdp.Empty{})
	call1(b, runtime.AddBinding, runtime.AddBindingParams{Name: canary})
	call1(b, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	b.size(1280, 900)
	for _, set := range settings {
		set(b)
	}
	return b
}

// withoutScript disables JavaScript.
func withoutScript(b *tab) {
	call1(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
}

// withAgent sets the User-Agent of requests.
func withAgent(userAgent string) func(*tab) {
	return func(b *tab) {
		call1(b, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{UserAgent: userAgent})
	}
}

// allowing lets pages send requests to other hosts, too.
func allowing(hosts ...string) func(*tab) {
	return func(b *tab) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.hosts = append(b.hosts, hosts...)
	}
}

// size sets the width and the height of the window.
func (b *tab) size(width, height int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height))
}

// call1 sends a command to the tab and returns its result.
func call1[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, pageWithin)
	defer cancel()
	result, err := chromedp.Call(ctx, command, params)
	b.must(err)
	return result
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, pageWithin)
	defer cancel()
	b.must(chromedp.Do(ctx, steps...))
}

func (b *tab) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// observe records what the page does wrong.
func (b *tab) observe(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if e.Type == network.ResourceTypeDocument {
			b.visited[e.Request.URL] = true
		}
		if u, err := url.Parse(e.Request.URL); err != nil || u.Host != "" && !slices.Contains(b.hosts, u.Host) {
			b.fault("%s requests %s", e.DocumentURL, e.Request.URL)
		}
	case *network.EventWebSocketCreated:
		b.fault("connection to %s", e.URL)
	case *runtime.EventExceptionThrown:
		b.fault("exception: %s", e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		b.fault("console: %s", e.Type)
	case *runtime.EventBindingCalled:
		b.fault("call of %s with %q", e.Name, e.Payload)
	case *audits.EventIssueAdded:
		// "Bounce tracking" is the browser's word for a short link to another site.
		if e.Issue.Code != audits.InspectorIssueCodeBounceTrackingIssue {
			b.fault("issue %s", e.Issue.Code)
		}
	case *log.EventEntryAdded:
		// The status of a page is not a fault: many tests expect an error page and check its status themselves.
		// The status of a form that a dialog has sent is not a fault, either.
		page := e.Entry.Source == log.EntrySourceNetwork &&
			(b.visited[e.Entry.URL] || strings.Contains(e.Entry.Text, "a status of 422"))
		if !page && (e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning) {
			b.fault("%s of %s: %s %s", e.Entry.Level, e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	}
}

func (b *tab) fault(format string, args ...any) {
	b.faults = append(b.faults, fmt.Sprintf(format, args...))
}

// takeFaults returns what pages did wrong since the last call.
func (b *tab) takeFaults() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	faults := b.faults
	b.faults = nil
	return faults
}
