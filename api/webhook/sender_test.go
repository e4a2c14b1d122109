package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"go.uber.org/goleak"

	"linkstream/api/webhook"
	"linkstream/schema"
	"linkstream/schema/linkstore"
	"linkstream/schema/service"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T) (store *linkstore.Store, owner schema.Account) {
	t.Helper()
	store = sqlitetest.New(t)
	owner = schema.Account{Email: "a@example.org", CreatedAt: time.Now()}
	testkit.Must(t, store.CreateAccount(t.Context(), &owner))
	return store, owner
}

// receiver keeps the messages that it has accepted.
type receiver struct {
	mu     sync.Mutex
	seen   map[string]string // bodies by webhook-id
	hashes []string          // of link events, in the order in which their ids were first seen
	calls  int
}

// handler checks the signature with the secret, keeps the message, and then answers by answer. So a lost answer leaves
// an accepted message.
func (r *receiver) handler(t *testing.T, secret string, answer func(call int, w http.ResponseWriter)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		check(t, err)
		checker, err := standardwebhooks.NewWebhook(secret)
		check(t, err)
		check(t, checker.Verify(body, req.Header))
		var message struct {
			Type, Timestamp string
			Data            struct{ Link struct{ Hash string } }
		}
		check(t, json.Unmarshal(body, &message))
		_, err = time.Parse(time.RFC3339, message.Timestamp)
		check(t, err)
		r.mu.Lock()
		id := req.Header.Get("webhook-id")
		if before, again := r.seen[id]; !again {
			r.seen[id] = string(body)
			r.hashes = append(r.hashes, message.Data.Link.Hash)
		} else if before != string(body) {
			t.Errorf("%s comes with another body", id)
		}
		r.calls++
		call := r.calls
		r.mu.Unlock()
		if answer != nil {
			answer(call, w)
		}
	})
}

func check(t *testing.T, err error) {
	if err != nil {
		t.Error(err)
	}
}

func (r *receiver) got() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.hashes...)
}

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// listen adds a receiver and a webhook of the account that leads to it.
func listen(t *testing.T, store *linkstore.Store, owner schema.Account,
	answer func(int, http.ResponseWriter)) (*receiver, schema.Webhook) {
	t.Helper()
	r := &receiver{seen: map[string]string{}}
	server := httptest.NewServer(r.handler(t, secret, answer))
	t.Cleanup(server.Close)
	hook := schema.Webhook{AccountID: owner.ID, URL: server.URL + "/hook", Events: []string{schema.EventLinkCreated},
		Active: true, Secret: secret,
		CreatedAt: time.Now(), UpdatedAt: time.Now()}
	testkit.Must(t, store.CreateWebhook(t.Context(), &hook))
	return r, hook
}

func addLinks(t *testing.T, store *linkstore.Store, owner schema.Account, first, n int) (hashes []string) {
	t.Helper()
	for i := range n {
		link := schema.Link{AccountID: owner.ID, Hash: fmt.Sprintf("l%d", first+i), URL: "https://example.org/", Active: true,
			CreatedAt: time.Now()}
		testkit.Must(t, store.CreateLink(t.Context(), &link))
		hashes = append(hashes, link.Hash)
	}
	return hashes
}

// run runs a sender that may call this machine, until the test ends or stop is called.
func run(t *testing.T, store schema.WebhookStore) (stop func()) {
	t.Helper()
	s := newSender(t, store, "127.0.0.0/8")
	s.SetPause(time.Millisecond)
	s.SetAnswerTimeout(2 * time.Second)
	stop = sync.OnceFunc(service.RunInBackground(t.Context(), s.Run))
	t.Cleanup(stop)
	return stop
}

func await(t *testing.T, r *receiver, want []string) {
	t.Helper()
	testkit.Succeeds(t, func() error { return testkit.Mismatch("received", r.got(), want) })
}

func state(t *testing.T, store *linkstore.Store, hook schema.Webhook) schema.Webhook {
	t.Helper()
	now, err := store.Webhook(t.Context(), hook.AccountID, hook.ID)
	testkit.Must(t, err)
	return now
}

func TestSenderSendsEachEventInOrder(t *testing.T) {
	t.Parallel()
	store, owner := open(t)
	steady, steadyHook := listen(t, store, owner, nil)
	half, halfHook := listen(t, store, owner, func(call int, w http.ResponseWriter) {
		if call%2 == 1 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	done := make(chan struct{})
	hanging, _ := listen(t, store, owner, func(call int, _ http.ResponseWriter) {
		if call == 1 {
			<-done
		}
	})
	t.Cleanup(func() { close(done) })
	dying, _ := listen(t, store, owner, func(call int, _ http.ResponseWriter) {
		if call%3 == 1 {
			panic(http.ErrAbortHandler)
		}
	})
	want := addLinks(t, store, owner, 0, 10)
	stop := run(t, store)
	await(t, steady, want)
	if n := len(hanging.got()); n > 1 {
		t.Errorf("a receiver that has not answered has %d messages", n)
	}
	await(t, half, want)
	await(t, dying, want)
	await(t, hanging, want) // once the attempt has ended without an answer

	stop() // others go on
	run(t, store)
	run(t, store)
	want = append(want, addLinks(t, store, owner, 10, 10)...)
	for _, r := range []*receiver{steady, half, dying, hanging} {
		await(t, r, want)
	}
	for _, hook := range []schema.Webhook{steadyHook, halfHook} {
		testkit.Eventually(t, "nothing waits", func() bool { return state(t, store, hook).Waiting == 0 })
		deliveries, err := store.Deliveries(t.Context(), hook.ID)
		testkit.Must(t, err)
		for _, d := range deliveries {
			testkit.Equal(t, "status", d.Status, schema.DeliveryDelivered)
			testkit.Equal(t, "error", d.Error, "")
		}
	}
	testkit.Equal(t, "calls of the receiver that accepts all", steady.calls, 20)
}

// hastyStore gives a first lease that ends at once. It calls noted for each outcome that was stored or refused.
type hastyStore struct {
	schema.WebhookStore
	given bool
	noted func(held bool)
}

func (h *hastyStore) ClaimWebhooks(ctx context.Context, holder string, lease time.Duration,
	limit int) ([]schema.Webhook, error) {
	if !h.given {
		lease = time.Millisecond
	}
	hooks, err := h.WebhookStore.ClaimWebhooks(ctx, holder, lease, limit)
	h.given = h.given || len(hooks) > 0
	return hooks, err
}

func (h *hastyStore) NoteDelivery(
	ctx context.Context, accountID, id int64, holder string, d schema.Delivery, note schema.DeliveryNote,
) (bool, error) {
	held, err := h.WebhookStore.NoteDelivery(ctx, accountID, id, holder, d, note)
	h.noted(held)
	return held, err
}

// TestSenderLosesItsLease lets a lease end while the receiver takes its time, and the same process claim the webhook
// again. The first attempt ends while the second claim has the webhook: its outcome does not count, and it sends no
// other message.
func TestSenderLosesItsLease(t *testing.T) {
	t.Parallel()
	store, owner := open(t)
	again, lost := make(chan struct{}), make(chan struct{})
	claimed, refused := sync.OnceFunc(func() { close(again) }), sync.OnceFunc(func() { close(lost) })
	r, hook := listen(t, store, owner, func(call int, _ http.ResponseWriter) {
		switch call {
		case 1:
			<-again
		case 3: // the second delivery, by the second claim
			claimed()
			<-lost
		}
	})
	t.Cleanup(func() { claimed(); refused() })
	want := addLinks(t, store, owner, 0, 6)
	var mu sync.Mutex
	var outcomes []bool
	stop := run(t, &hastyStore{WebhookStore: store, noted: func(held bool) {
		mu.Lock()
		defer mu.Unlock()
		if outcomes = append(outcomes, held); len(outcomes) == 2 { // by the first attempt
			refused()
		}
	}})
	await(t, r, want)
	testkit.Eventually(t, "nothing waits", func() bool { return state(t, store, hook).Waiting == 0 })
	stop()
	testkit.Equal(t, "calls", r.calls, len(want)+1)
	testkit.Equal(t, "outcomes that were stored", outcomes, []bool{true, false, true, true, true, true, true})
}

// TestSenderBoundsAccounts replaces webhooks whose receivers hang: an account has at most one attempt per webhook.
func TestSenderBoundsAccounts(t *testing.T) {
	t.Parallel()
	store, owner := open(t)
	hang := make(chan struct{})
	r, hook := listen(t, store, owner, func(int, http.ResponseWriter) { <-hang })
	answer := sync.OnceFunc(func() { close(hang) })
	t.Cleanup(answer)
	hooks := []schema.Webhook{hook}
	for range schema.MaxWebhooks - 1 {
		testkit.Must(t, store.CreateWebhook(t.Context(), &hook))
		hooks = append(hooks, hook)
	}
	addLinks(t, store, owner, 0, 1)
	stop := sync.OnceFunc(service.RunInBackground(t.Context(), newSender(t, store, "127.0.0.0/8").Run))
	t.Cleanup(stop)
	calls := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.calls
	}
	testkit.Eventually(t, "all receivers hang", func() bool { return calls() == schema.MaxWebhooks })
	for _, hook := range hooks {
		testkit.Must(t, store.DeleteWebhook(t.Context(), owner.ID, hook.ID))
	}
	testkit.Must(t, store.CreateWebhook(t.Context(), &hook))
	addLinks(t, store, owner, 1, 1)
	other := schema.Account{Email: "b@example.org", CreatedAt: time.Now()}
	testkit.Must(t, store.CreateAccount(t.Context(), &other))
	marker, _ := listen(t, store, other, nil)
	await(t, marker, addLinks(t, store, other, 2, 1)) // claimed after the new webhook, or with it
	answer()
	stop()
	testkit.Equal(t, "calls", calls(), schema.MaxWebhooks)
}

// attempt adds a receiver and returns the outcome of a delivery to it.
func attempt(t *testing.T, allow string, edit func(*schema.Webhook), answer http.HandlerFunc) schema.DeliveryNote {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body) // from then on the server notices that the client is gone
		answer(w, req)
	}))
	defer server.Close()
	s := newSender(t, nil, allow)
	s.SetAnswerTimeout(time.Second)
	hook := schema.Webhook{URL: server.URL, Secret: secret}
	if edit != nil {
		edit(&hook)
	}
	return s.Attempt(t.Context(), hook, schema.Delivery{Message: "msg_1", Event: schema.EventTest, Data: "{}"})
}

func TestAttempt(t *testing.T) {
	t.Parallel()
	const here = "127.0.0.0/8"
	status := func(code int, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if len(header) > 0 {
				w.Header().Set(header[0], header[1])
			}
			w.WriteHeader(code)
		}
	}
	failing := func(since time.Duration) func(*schema.Webhook) {
		return func(h *schema.Webhook) { h.FailingSince = time.Now().Add(-since) }
	}
	followed := false
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed = true }))
	t.Cleanup(target.Close)
	for _, c := range []struct {
		name, allow string
		edit        func(*schema.Webhook)
		answer      http.HandlerFunc
		delivered   bool
		off, err    string
		pause       time.Duration
	}{
		{"accepted", here, nil, status(204), true, "", "", 0},
		{"refused", here, nil, status(500), false, "", "The receiver answered 500.", 5 * time.Second},
		{"asks for time", here, nil, status(503, "Retry-After", "3600"), false, "", "The receiver answered 503.", time.Hour},
		{"asks for years", here, nil, status(429, "Retry-After", "999999999"), false, "", "The receiver answered 429.",
			24 * time.Hour},
		{"gone", here, nil, status(410), false, schema.OffGone, "The receiver answered 410.", 5 * time.Second},
		{"redirects", here, nil, status(307, "Location", target.URL), false, "", "The receiver answered 307.",
			5 * time.Second},
		{"fails for less than three days", here, failing(webhook.GiveUp - time.Hour), status(500), false, "",
			"The receiver answered 500.", 5 * time.Second},
		{"fails for more than three days", here, failing(webhook.GiveUp + time.Hour), status(500), false, schema.OffFailing,
			"The receiver answered 500.", 5 * time.Second},
		{"accepts after three days", here, failing(webhook.GiveUp + time.Hour), status(200), true, "", "", 0},
		{"hangs", here, nil, func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }, false, "",
			"The receiver did not answer in time.", 5 * time.Second},
		{"answers without end", here, nil, func(w http.ResponseWriter, req *http.Request) {
			for req.Context().Err() == nil {
				_, _ = w.Write(make([]byte, 1<<10))
			}
		}, true, "", "", 0},
		{"dies", here, nil, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false, "",
			"The receiver could not be reached.", 5 * time.Second},
		{"is on this machine, by http", "", nil, status(200), false, "",
			"Http is for receivers in networks that the operator allows.", 5 * time.Second},
		{"is on this machine, by https", "", func(h *schema.Webhook) { h.URL = "https" + strings.TrimPrefix(h.URL, "http") },
			status(200), false, "",
			"The address of the receiver is not public.", 5 * time.Second},
		{"has a name that leads to this machine", "", func(h *schema.Webhook) {
			h.URL = "https" + strings.Replace(strings.TrimPrefix(h.URL, "http"), "127.0.0.1", "localhost", 1)
		},
			status(200), false, "", "The address of the receiver is not public.", 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			note := attempt(t, c.allow, c.edit, c.answer)
			testkit.Equal(t, "delivered", note.Delivered, c.delivered)
			testkit.Equal(t, "switched off", note.Off, c.off)
			testkit.Equal(t, "error", note.Error, c.err)
			if note.Pause < c.pause || note.Pause > c.pause*6/5+time.Second {
				t.Errorf("pause %s, want %s", note.Pause, c.pause)
			}
		})
	}
	testkit.Equal(t, "the redirect was followed", followed, false)
}

func TestAttemptKeepsTheAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, answer, want string }{
		{"as it is", "{\"ok\": “ja”}\n\x1b", "{\"ok\": “ja”}\n\x1b"},
		{"nothing", "", ""},
		{"no text", "a\xff\x00b", "a\uFFFD\uFFFDb"},
		{"its beginning", strings.Repeat("x", 1<<20), strings.Repeat("x", 1024)},
		{"whole characters", strings.Repeat("x", 1022) + "日", strings.Repeat("x", 1022)},
		{"bytes that become longer", strings.Repeat("\x00", 2000), strings.Repeat("\uFFFD", 341)},
	} {
		t.Run(c.name, func(t *testing.T) {
			note := attempt(t, "127.0.0.0/8", nil, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusTeapot)
				_, _ = io.WriteString(w, c.answer)
			})
			testkit.Equal(t, "text", note.Answer.Text, c.want)
			testkit.Equal(t, "status", note.Answer.Status, http.StatusTeapot)
		})
	}
}

func TestSenderSwitchesOff(t *testing.T) {
	t.Parallel()
	store, owner := open(t)
	r, hook := listen(t, store, owner, func(_ int, w http.ResponseWriter) { w.WriteHeader(http.StatusGone) })
	addLinks(t, store, owner, 0, 3)
	run(t, store)
	testkit.Eventually(t, "the webhook is off", func() bool { return !state(t, store, hook).Active })
	now := state(t, store, hook)
	testkit.Equal(t, "reason", now.OffReason, schema.OffGone)
	testkit.Equal(t, "dropped", now.Dropped, 2)
	addLinks(t, store, owner, 3, 1)
	testkit.Equal(t, "calls", r.calls, 1)
	testkit.Equal(t, "waiting", state(t, store, hook).Waiting, 0)
}

// The first vector is from the tests of the library.
func TestSign(t *testing.T) {
	t.Parallel()
	at, body := time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`)
	hook := schema.Webhook{Secret: secret, OldSecret: webhook.NewSecret(), OldSecretUntil: at}
	got, err := webhook.Sign(hook, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, body)
	testkit.Must(t, err)
	testkit.Equal(t, "signature", got, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
	hook.OldSecretUntil = at.Add(time.Second)
	got, err = webhook.Sign(hook, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, body)
	testkit.Must(t, err)
	for _, s := range []string{hook.Secret, hook.OldSecret} {
		checker, err := standardwebhooks.NewWebhook(s)
		testkit.Must(t, err)
		header := http.Header{}
		header.Set("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek")
		header.Set("webhook-timestamp", "1614265330")
		header.Set("webhook-signature", got)
		testkit.Must(t, checker.VerifyIgnoringTimestamp(body, header))
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "90": 90 * time.Second, "-5": 0, "soon": 0, "99999999999": 0,
		"Wed, 25 Nov 2026 12:10:00 GMT": 10 * time.Minute,
		"Wed, 25 Nov 2026 11:10:00 GMT": 0, "Fri, 25 Nov 2050 11:10:00 GMT": 24 * time.Hour,
	} {
		testkit.Equal(t, value, webhook.RetryAfter(http.Header{"Retry-After": {value}}, now), want)
	}
}

func TestClicksOfAMessage(t *testing.T) {
	t.Parallel()
	store, owner := open(t)
	r, hook := listen(t, store, owner, nil)
	hook.Events = []string{schema.EventLinkClicked}
	testkit.Must(t, store.UpdateWebhook(t.Context(), &hook))
	addLinks(t, store, owner, 1, 1)
	link, err := schema.FindLink(t.Context(), store, 0, "l1")
	testkit.Must(t, err)
	now := time.UnixMilli(time.Now().UnixMilli()).UTC()
	batch := schema.ClickBatch{Next: 2, Offset: []int64{0, 1}, Lane: []schema.Lane{{}, {}}, Seq: []uint64{1, 2},
		LinkID: []int64{link.ID, link.ID}, AccountID: []int64{owner.ID, owner.ID}, ClickedAt: []time.Time{now, now},
		Device: []schema.Device{schema.Desktop, schema.Bot}, Browser: []string{"Firefox", ""},
		Referrer: []string{"", "a.example"},
		Country:  []string{"DE", ""}, OS: []string{"Linux", ""}, Language: []string{"de", ""}, Route: []string{"", "red"}}
	testkit.Must(t, store.QueueClicks(t.Context(), &batch))
	run(t, store)
	testkit.Eventually(t, "a message", func() bool { return len(r.got()) == 1 })
	var message struct {
		Type string
		Data map[string][]map[string]any
	}
	for _, body := range r.seen {
		testkit.Must(t, json.Unmarshal([]byte(body), &message))
	}
	at := now.Format("2006-01-02T15:04:05.000+00:00")
	want := []map[string]any{
		{"hash": "l1", "domain_id": nil, "clicked_at": at, "device": "desktop", "browser": "Firefox", "os": "Linux",
			"language": "de",
			"referrer": "", "country": "DE", "bot": false, "route": ""},
		{"hash": "l1", "domain_id": nil, "clicked_at": at, "device": "bot", "browser": "", "os": "", "language": "",
			"referrer": "a.example", "country": "", "bot": true, "route": "red"},
	}
	got := message.Data["clicks"]
	testkit.Equal(t, "clicks", len(got), 2)
	for i, click := range got {
		if id, _ := click["id"].(string); len(id) < 20 || id == got[1-i]["id"] {
			t.Errorf("id %q", click["id"])
		}
	}
	for _, click := range got {
		delete(click, "id")
	}
	testkit.Equal(t, "clicks", got, want)
	testkit.Equal(t, "type", message.Type, schema.EventLinkClicked)
}
