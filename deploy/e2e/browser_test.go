package e2e_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"linkstream/deploy/testengines/enginetest"
	"linkstream/schema/testkit"
)

// chromium is the browser that the tests share, each with profiles of its own. It is started for the first of them.
var chromium struct {
	once sync.Once
	ctx  context.Context
	end  context.CancelFunc
	err  error
}

// startChromium starts the shared browser. It finds no address but those of this machine, whatever a page asks for.
func startChromium(t *testing.T) context.Context {
	t.Helper()
	found := enginetest.Chromium(t)
	chromium.once.Do(func() {
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(found.Path), chromedp.Env(found.Env...),
			chromedp.Flag("headless", "new"), chromedp.DisableGPU, chromedp.Flag("disable-component-update", true),
			chromedp.Flag("disable-quic", true), chromedp.Flag("disable-features", "Translate,MediaRouter,OptimizationHints"),
			chromedp.Flag("lang", "en-GB"), chromedp.Flag("accept-lang", "en-GB"),
			chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"))
		// Not the test's context: the browser serves the other tests, too.
		allocator, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, cancel := chromedp.NewContext(allocator)
		chromium.ctx, chromium.end = ctx, func() {
			closing, stop := context.WithTimeout(ctx, pageWithin)
			_ = chromedp.Cancel(closing) // lets it finish writing to its folder; what does not end is killed
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

// endChromium ends the shared browser, if it was started.
func endChromium() {
	if chromium.end != nil {
		chromium.end()
	}
}

// tab is a page in a profile of its own: with no cookies, and with nothing kept from other tests.
type tab struct {
	t    *testing.T
	base string // of the dashboard
	ctx  context.Context

	mu      sync.Mutex
	hosts   []string // that may be asked for something
	faults  []string // what no page should do
	visited map[string]bool
}

// canary is a function of every page that no page should ever call.
const canary = "canary"

// pageWithin bounds how long the tests wait for what a page does.
const pageWithin = 20 * time.Second

// tab opens a tab. What the test's pages do wrong in it fails the test: errors, violations of their policy, requests to
// other hosts.
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

// run runs a subtest on the tab as the one before has left it.
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
	ctx, cancel := chromedp.NewContext(shared, chromedp.WithNewBrowserContext(), chromedp.WithListener(b.see))
	b.ctx = ctx
	t.Cleanup(cancel)
	b.must(chromedp.Do(ctx)) // without a deadline, which would be that of the tab
	call1(b, audits.Enable, cdp.Empty{})
	call1(b, runtime.AddBinding, runtime.AddBindingParams{Name: canary})
	call1(b, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	b.size(1280, 900)
	for _, set := range settings {
		set(b)
	}
	return b
}

// withoutScript has pages do without JavaScript.
func withoutScript(b *tab) {
	call1(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
}

// saying has the browser send another User-Agent.
func saying(userAgent string) func(*tab) {
	return func(b *tab) {
		call1(b, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{UserAgent: userAgent})
	}
}

// asking lets pages ask other hosts, too.
func asking(hosts ...string) func(*tab) {
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

// see takes note of what the page does.
func (b *tab) see(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if e.Type == network.ResourceTypeDocument {
			b.visited[e.Request.URL] = true
		}
		if u, err := url.Parse(e.Request.URL); err != nil || u.Host != "" && !slices.Contains(b.hosts, u.Host) {
			b.fault("request of %s for %s", e.DocumentURL, e.Request.URL)
		}
	case *network.EventWebSocketCreated:
		b.fault("connection to %s", e.URL)
	case *runtime.EventExceptionThrown:
		b.fault("exception: %s", e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		b.fault("the console was written to: %s", e.Type)
	case *runtime.EventBindingCalled:
		b.fault("%s was called with %q", e.Name, e.Payload)
	case *audits.EventIssueAdded:
		b.fault("issue %s", e.Issue.Code)
	case *log.EventEntryAdded:
		// That a page was answered with an error is what many tests are about; its status is theirs to look at.
		page := e.Entry.Source == log.EntrySourceNetwork && b.visited[e.Entry.URL]
		if !page && (e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning) {
			b.fault("%s of %s: %s %s", e.Entry.Level, e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	}
}

func (b *tab) fault(format string, args ...any) {
	b.faults = append(b.faults, fmt.Sprintf(format, args...))
}

// takeFaults returns what pages did wrong since it was asked last.
func (b *tab) takeFaults() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	faults := b.faults
	b.faults = nil
	return faults
}

// A browser that notices nothing would let all tests pass.
func TestDashboardFaultsAreNoticed(t *testing.T) {
	t.Parallel()
	const noScript = `<meta http-equiv=Content-Security-Policy content="script-src 'none'">`
	faulty := map[string]struct{ page, want string }{
		"an exception":              {`<script>nothing.at.all</script>`, "exception: Uncaught"},
		"a message on the console":  {`<script>console.error("no")</script>`, "the console was written to"},
		"a call of the canary":      {`<script>canary("sings")</script>`, `canary was called with "sings"`},
		"a handler":                 {noScript + `<img src=x onerror=canary("")>`, "Content Security Policy"},
		"a request to another host": {`<img src="http://elsewhere.example/x.png">`, "request of http"},
		"a file that is not there":  {`<img src="/missing.png">`, "error of network"},
		"a connection":              {`<script>new WebSocket("ws://elsewhere.example/")</script>`, "connection to ws://else"},
	}
	for name, c := range faulty {
		t.Run(name, func(t *testing.T) {
			b := newTab(t, serve(t, c.page))
			b.open("/")
			testkit.SucceedsWithin(t, pageWithin, func() error {
				if all := strings.Join(b.takeFaults(), "\n"); !strings.Contains(all, c.want) {
					return fmt.Errorf("no %q in: %s", c.want, all)
				}
				return nil
			})
		})
	}
	t.Run("and a page without any has none", func(t *testing.T) {
		b := newTab(t, serve(t, `<title>Fine</title><h1>Fine</h1><script>document.title = "Better"</script>`))
		b.open("/")
		if faults := b.takeFaults(); len(faults) > 0 {
			t.Error(faults)
		}
	})
}
