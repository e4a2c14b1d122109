package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/linkstore"
	"linkstream/schema/testkit"
)

var clickHookBehaviours = []behaviour[schema.Database]{
	{"clicks are delivered to the webhooks that subscribe to them", deliversClicks},
	{"a webhook receives the clicks since it is on", deliversSinceOn},
	{"clicks and marks and position change together and once", deliversOnce},
	{"the same lane may go on in another partition", deliversMovedLanes},
	{"one of concurrent batches is queued", queuesOneOfConcurrentBatches},
	{"clicks become deliveries of a bounded size, which do not grow", boundsClicksOfDeliveries},
	{"clicks that have no room are dropped and counted", boundsClicksThatWait},
}

// clickHook makes addWebhook add a webhook of clicks, after edit.
func clickHook(edit func(*schema.Webhook)) func(*schema.Webhook) {
	return func(h *schema.Webhook) {
		if h.Events = []string{schema.EventLinkClicked}; edit != nil {
			edit(h)
		}
	}
}

// clickNow returns n clicks on a link, in a lane of their own.
func clickNow(link schema.Link, n int) []click {
	clicks := clicksOf(link.ID, n)
	for i := range clicks {
		clicks[i].account, clicks[i].at = link.AccountID, time.Now().UTC()
	}
	return clicks
}

// queue queues the next batch of a partition.
func (m *model) queue(t *testing.T, store schema.ClickHookStore, partition int, clicks ...click) {
	t.Helper()
	b := m.batch(partition, clicks...)
	testkit.Must(t, store.QueueClicks(t.Context(), b))
	m.count(b)
}

// waitingClicks returns the clicks that wait for a webhook, a list for each delivery, and requires that the webhook
// counts their bytes.
func waitingClicks(t *testing.T, store schema.WebhookStore, hook schema.Webhook) (all [][]schema.ClickEvent) {
	t.Helper()
	deliveries, err := store.WaitingDeliveries(t.Context(), hook.AccountID, hook.ID, 100)
	testkit.Must(t, err)
	bytes := 0
	for _, d := range deliveries {
		testkit.Equal(t, "event", d.Event, schema.EventLinkClicked)
		bytes += len(d.Data)
		var clicks []schema.ClickEvent
		for line := range strings.Lines(d.Data) {
			var e schema.ClickEvent
			testkit.Must(t, json.Unmarshal([]byte(line), &e))
			clicks = append(clicks, e)
		}
		all = append(all, clicks)
	}
	testkit.Equal(t, "waiting bytes", webhookOf(t, store, hook).Waiting, int64(bytes))
	return all
}

// hashes returns the hashes of all clicks that wait for a webhook.
func hashes(t *testing.T, store schema.WebhookStore, hook schema.Webhook) (all []string) {
	t.Helper()
	for _, clicks := range waitingClicks(t, store, hook) {
		for _, c := range clicks {
			all = append(all, c.Hash)
		}
	}
	return all
}

func wantClickHooks(t *testing.T, store schema.ClickHookStore, accounts ...int64) {
	t.Helper()
	got, err := store.ClickHookAccounts(t.Context())
	testkit.Must(t, err)
	testkit.Equal(t, "accounts with webhooks of clicks", got, accounts, nilOrEmpty)
}

func deliversClicks(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	one, custom, foreign := addLink(t, store, owner.ID, 0, "one"), addLink(t, store, owner.ID, domain.ID, "one"),
		addLink(t, store, other.ID, 0, "foreign")
	two, deleted := addLink(t, store, owner.ID, 0, "two"), addLink(t, store, owner.ID, 0, "deleted")
	testkit.Must(t, store.UpdateLink(t.Context(), &two, schema.LinkEdit{Tags: &[]string{"a_b", "z"}}, hour(1)))
	testkit.Must(t, store.DeleteLink(t.Context(), deleted, hour(1)))
	wantClickHooks(t, store)
	deaf := addWebhook(t, store, owner.ID, nil)
	off := addWebhook(t, store, owner.ID, clickHook(func(h *schema.Webhook) { h.Active = false }))
	wantClickHooks(t, store)
	all := addWebhook(t, store, owner.ID, clickHook(func(h *schema.Webhook) { h.PeopleOnly = false }))
	people := addWebhook(t, store, owner.ID, clickHook(nil))
	ofOne := addWebhook(t, store, owner.ID, clickHook(func(h *schema.Webhook) { h.Hash = "one" }))
	ofCustom := addWebhook(t, store, owner.ID,
		clickHook(func(h *schema.Webhook) { h.Hash, h.DomainID = "one", domain.ID }))
	tagged := addWebhook(t, store, owner.ID, clickHook(func(h *schema.Webhook) { h.Tag = "a_b" }))
	wantClickHooks(t, store, owner.ID)

	var clicks []click
	for _, link := range []schema.Link{one, custom, foreign, two, deleted} {
		clicks = append(clicks, clickNow(link, 1)...)
	}
	bot := clickNow(two, 1)[0]
	bot.names[schema.ByDevice], bot.names[schema.ByBrowser], bot.names[schema.ByRoute] = schema.Bot, "", "phones"
	m := newModel()
	m.queue(t, store, 0, append(clicks, bot)...)
	testkit.Equal(t, "all", hashes(t, store, all), []string{"one", "one", "two", "deleted", "two"})
	testkit.Equal(t, "people", hashes(t, store, people), []string{"one", "one", "two", "deleted"})
	testkit.Equal(t, "of a link", hashes(t, store, ofOne), []string{"one"})
	testkit.Equal(t, "of a link of a domain", hashes(t, store, ofCustom), []string{"one"})
	testkit.Equal(t, "with a tag", hashes(t, store, tagged), []string{"two"})
	testkit.Equal(t, "of other events", hashes(t, store, deaf), nil, nilOrEmpty)
	testkit.Equal(t, "of a webhook that is off", hashes(t, store, off), nil, nilOrEmpty)

	events := waitingClicks(t, store, all)[0]
	ids := map[string]bool{}
	for _, e := range events {
		ids[e.ID] = true
	}
	testkit.Equal(t, "ids", len(ids), len(events))
	testkit.Equal(t, "the id elsewhere", waitingClicks(t, store, tagged)[0][0].ID, events[2].ID)
	testkit.Equal(t, "custom domain", events[1].DomainID, &domain.ID)
	want := schema.ClickEvent{ID: events[0].ID, Hash: "one",
		ClickedAt: clicks[0].at.Format("2006-01-02T15:04:05.000-07:00"), Device: schema.Desktop,
		Browser: "Firefox", OS: "Linux", Language: "de", Referrer: "news.example.org", Country: "DE"}
	testkit.Equal(t, "click", events[0], want)
	if last := events[4]; !last.Bot || last.Device != schema.Bot || last.Route != "phones" {
		t.Errorf("click of a bot: %+v", last)
	}
}

func deliversSinceOn(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	link := addLink(t, store, owner.ID, 0, "one")
	hook := addWebhook(t, store, owner.ID, clickHook(nil))
	m := newModel()
	early := clickNow(link, 1)[0]
	early.at = early.at.Add(-time.Hour)
	m.queue(t, store, 0, early)
	testkit.Equal(t, "clicks from before the webhook", hashes(t, store, hook), nil, nilOrEmpty)
	kept := clickNow(link, 1)[0]
	hook.URL = "https://example.org/other"
	testkit.Must(t, store.UpdateWebhook(t.Context(), &hook))
	hook.Active = false
	testkit.Must(t, store.UpdateWebhook(t.Context(), &hook))
	m.queue(t, store, 0, kept)
	hook.Active = true
	testkit.Must(t, store.UpdateWebhook(t.Context(), &hook))
	testkit.Equal(t, "while it was off", hashes(t, store, hook), nil, nilOrEmpty)
	m.queue(t, store, 0, kept)
	testkit.Equal(t, "since it is on", hashes(t, store, hook), []string{"one"})
}

func (m *model) checkQueued(t *testing.T, store schema.ClickHookStore, partition int) {
	t.Helper()
	at, err := store.QueuedPosition(t.Context(), partition)
	testkit.Must(t, err)
	p := m.partition(partition)
	testkit.Equal(t, "position", at, schema.Position{Epoch: p.epoch, Next: p.next, Last: p.last})
	for lane, seq := range p.marks {
		marks, err := store.QueuedMarks(t.Context(), []schema.Lane{{Number: 77}, lane})
		testkit.Must(t, err)
		testkit.Equal(t, "marks", marks, []uint64{0, seq})
	}
}

func deliversOnce(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	link := addLink(t, store, owner.ID, 0, "one")
	hook := addWebhook(t, store, owner.ID, clickHook(nil))
	m := newModel()
	m.checkQueued(t, store, 3)
	m.queue(t, store, 3, clickNow(link, 2)...)
	repeated := m.batch(3, clickNow(link, 1)...)
	m.queue(t, store, 3, clickNow(link, 3)...)
	m.checkQueued(t, store, 3)
	testkit.WantCode(t, store.QueueClicks(t.Context(), repeated), schema.CodeConflict)
	beyond := m.batch(3, clickNow(link, 1)...)
	beyond.Base++
	testkit.WantCode(t, store.QueueClicks(t.Context(), beyond), schema.CodeConflict)
	beyond = newModel().batch(4, clickNow(addLink(t, store, owner.ID, 0, "two"), 1)...)
	beyond.Base = 7
	testkit.WantCode(t, store.QueueClicks(t.Context(), beyond), schema.CodeConflict)
	low := m.batch(3, clickNow(link, 1)...)
	low.Seq[0]--
	testkit.WantCode(t, store.QueueClicks(t.Context(), low), schema.CodeConflict)
	m.checkQueued(t, store, 3)
	next := m.nextEpoch(3, 0, clickNow(link, 1)...)
	testkit.Must(t, store.QueueClicks(t.Context(), next))
	m.count(next)
	m.checkQueued(t, store, 3)
	next.Epoch += 2
	testkit.WantCode(t, store.QueueClicks(t.Context(), next), schema.CodeInternal)
	testkit.Equal(t, "queued", len(hashes(t, store, hook)), 6)
}

func deliversMovedLanes(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	link := addLink(t, store, owner.ID, 0, "one")
	hook := addWebhook(t, store, owner.ID, clickHook(nil))
	m := newModel()
	m.queue(t, store, 0, clickNow(link, 2)...)
	again := newModel().batch(1, clickNow(link, 3)...)
	testkit.WantCode(t, store.QueueClicks(t.Context(), again), schema.CodeConflict)
	again.Offset, again.Lane, again.Seq, again.LinkID, again.AccountID = again.Offset[2:], again.Lane[2:], again.Seq[2:],
		again.LinkID[2:], again.AccountID[2:]
	testkit.Must(t, store.QueueClicks(t.Context(), again))
	testkit.Equal(t, "queued", len(hashes(t, store, hook)), 3)
}

func queuesOneOfConcurrentBatches(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	link := addLink(t, store, owner.ID, 0, "one")
	hook := addWebhook(t, store, owner.ID, clickHook(nil))
	m := newModel()
	for range 3 {
		b := m.batch(0, clickNow(link, 5)...)
		onlyOne(t, concurrently(4, func(int) error { return store.QueueClicks(t.Context(), b) }), schema.CodeConflict)
		m.count(b)
	}
	m.checkQueued(t, store, 0)
	testkit.Equal(t, "queued", len(hashes(t, store, hook)), 15)
}

func boundsClicksOfDeliveries(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	link := addLink(t, store, owner.ID, 0, "one")
	hook := addWebhook(t, store, owner.ID, func(h *schema.Webhook) {
		h.Events = []string{schema.EventLinkClicked,
			schema.EventLinkUpdated}
	})
	m := newModel()
	for _, n := range []int{300, 150, 100, 1201} {
		m.queue(t, store, 0, clickNow(link, n)...)
	}
	listed, err := store.Deliveries(t.Context(), hook.ID)
	testkit.Must(t, err)
	testkit.Equal(t, "deliveries before they are made", len(listed), 0)
	sizes := func() (all []int) {
		for _, clicks := range waitingClicks(t, store, hook) {
			all = append(all, len(clicks))
		}
		return all
	}
	testkit.Equal(t, "clicks", sizes(), []int{450, 100, 500, 500, 201})
	before, err := store.WaitingDeliveries(t.Context(), hook.AccountID, hook.ID, 2)
	testkit.Must(t, err)
	testkit.Equal(t, "read", len(before), 2)
	m.queue(t, store, 0, clickNow(link, 7)...)
	testkit.Equal(t, "clicks later", sizes(), []int{450, 100, 500, 500, 201, 7})
	after, err := store.WaitingDeliveries(t.Context(), hook.AccountID, hook.ID, 2)
	testkit.Must(t, err)
	testkit.Equal(t, "deliveries later", after, before)
	ids := map[string]bool{}
	for _, clicks := range waitingClicks(t, store, hook) {
		for _, c := range clicks {
			ids[c.ID] = true
		}
	}
	testkit.Equal(t, "ids", len(ids), 1758)

	m.queue(t, store, 0, clickNow(link, 1)...)
	testkit.Must(t, store.UpdateLink(t.Context(), &link, schema.LinkEdit{Title: new("t")}, hour(1)))
	m.queue(t, store, 0, clickNow(link, 1)...)
	deliveries, err := store.WaitingDeliveries(t.Context(), hook.AccountID, hook.ID, 100)
	testkit.Must(t, err)
	var events []string
	for _, d := range deliveries[6:] {
		events = append(events, fmt.Sprint(d.Event, " ", strings.Count(d.Data, "\n")))
	}
	testkit.Equal(t, "in order", events, []string{"link.clicked 2", "link.updated 0"})
}

// TestLateHolder lets a process stand still after it has read which clicks of a webhook wait. When it goes on, another
// process has read the same clicks and more. No click may be lost.
func TestLateHolder(t *testing.T, store *linkstore.Store) {
	owner := addAccount(t, store, "a@example.org")
	link := addLink(t, store, owner.ID, 0, "one")
	hook := addWebhook(t, store, owner.ID, clickHook(nil))
	putTogether := func(before func()) error {
		_, err := Watched(store, func(_ context.Context, step Step) error {
			if step == (Step{}) {
				before()
			}
			return nil
		}).WaitingDeliveries(t.Context(), hook.AccountID, hook.ID, 10)
		return err
	}
	m := newModel()
	m.queue(t, store, 0, clickNow(link, 3)...)
	reached, thaw, late := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		late <- putTogether(func() {
			close(reached)
			<-thaw
		})
	}()
	<-reached
	m.queue(t, store, 0, clickNow(link, 2)...)
	testkit.Must(t, putTogether(func() {
		close(thaw)
		testkit.Must(t, <-late)
	}))
	testkit.Equal(t, "clicks", len(hashes(t, store, hook)), 5)
}

func boundsClicksThatWait(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	link := addLink(t, store, owner.ID, 0, "one")
	hook := addWebhook(t, store, owner.ID, func(h *schema.Webhook) {
		h.Events = []string{schema.EventLinkClicked,
			schema.EventLinkUpdated}
	})
	title := strings.Repeat("x", 16<<20-2000)
	for n := range 4 {
		testkit.Must(t, store.UpdateLink(t.Context(), &link, schema.LinkEdit{Title: &title}, hour(n)))
	}
	room := schema.MaxWebhookWaiting - int(webhookOf(t, store, hook).Waiting)
	m := newModel()
	m.queue(t, store, 0, clickNow(link, 501)...) // a delivery that is too large, and another that has room
	now := webhookOf(t, store, hook)
	testkit.Equal(t, "dropped", now.Dropped, int64(1))
	if left := schema.MaxWebhookWaiting - int(now.Waiting); left < 0 || left >= room || left < room-500 {
		t.Errorf("room for %d bytes, then for %d", room, left)
	}
	now.Active = false
	testkit.Must(t, store.UpdateWebhook(t.Context(), &now))
	testkit.Equal(t, "dropped with those that waited", webhookOf(t, store, hook).Dropped, int64(6))
}
