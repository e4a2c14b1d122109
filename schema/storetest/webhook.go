package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var webhookBehaviours = []behaviour[schema.Database]{
	{"webhooks are kept, changed and deleted by their account", keepsWebhooks},
	{"changes of links and domains become deliveries of the webhooks with their events", deliversChanges},
	{"an event of a link has the path mode of its domain", deliversPathModes},
	{"a change that fails is delivered to nobody", failuresAreNotDelivered},
	{"webhooks are given to one holder until its lease ends", claimsWebhooks},
	{"the outcome of an attempt decides what happens to a delivery and its webhook", notesDeliveries},
	{"the answer to the last attempt is kept", keepsAnswers},
	{"an edit takes a webhook from its holder, and nobody else gets it before the lease ends", editsWhileSending},
	{"deliveries that wait for a webhook are bounded, and deliveries without room are counted", boundsDeliveries},
	{"finished deliveries are kept up to a number, and can be sent again", resendsDeliveries},
}

var allEvents = []string{schema.EventDomainChanged, schema.EventLinkCreated, schema.EventLinkDeleted,
	schema.EventLinkUpdated}

// longLease does not end during a test.
const longLease = time.Hour

func addWebhook(t *testing.T, store schema.WebhookStore, accountID int64, edit func(*schema.Webhook)) schema.Webhook {
	t.Helper()
	hook := schema.Webhook{AccountID: accountID, URL: "https://example.org/hook", Events: allEvents, Active: true,
		PeopleOnly: true,
		Secret:     "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", CreatedAt: epoch, UpdatedAt: epoch}
	if edit != nil {
		edit(&hook)
	}
	testkit.Must(t, store.CreateWebhook(t.Context(), &hook))
	return webhookOf(t, store, hook)
}

// webhookOf returns the webhook as it is now.
func webhookOf(t *testing.T, store schema.WebhookStore, hook schema.Webhook) schema.Webhook {
	t.Helper()
	now, err := store.Webhook(t.Context(), hook.AccountID, hook.ID)
	testkit.Must(t, err)
	return now
}

func keepsWebhooks(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	hook := addWebhook(t, store, owner.ID, nil)
	testkit.Equal(t, "events", hook.Events, allEvents)
	hook.URL, hook.Events, hook.DomainID, hook.Hash, hook.Tag = "http://10.0.0.1/", allEvents[:1], 7, "made", "spring"
	hook.PeopleOnly, hook.UpdatedAt = false, hour(1)
	testkit.Must(t, store.UpdateWebhook(t.Context(), &hook))
	testkit.Must(t, store.RotateSecret(t.Context(), owner.ID, hook.ID, "whsec_bmV3", hour(2)))
	hook.OldSecret, hook.Secret, hook.OldSecretUntil = hook.Secret, "whsec_bmV3", hour(2)
	got := webhookOf(t, store, hook)
	hook.NextAt = got.NextAt
	testkit.Equal(t, "webhook", got, hook)

	foreign := hook
	foreign.AccountID = other.ID
	_, err := store.Webhook(t.Context(), other.ID, hook.ID)
	for what, err := range map[string]error{
		"read": err, "update": store.UpdateWebhook(t.Context(), &foreign),
		"delete": store.DeleteWebhook(t.Context(), other.ID, hook.ID),
		"rotate": store.RotateSecret(t.Context(), other.ID, hook.ID, "x", hour(2)),
		"test":   store.TestWebhook(t.Context(), other.ID, hook.ID),
	} {
		if schema.ErrorCode(err) != schema.CodeNotFound {
			t.Errorf("%s a webhook of another account: %v", what, err)
		}
	}
	errs := concurrently(schema.MaxWebhooks+2, func(int) error {
		another := hook
		return store.CreateWebhook(t.Context(), &another)
	})
	refused := 0
	for _, err := range errs {
		if err != nil {
			testkit.WantCode(t, err, schema.CodeConflict)
			refused++
		}
	}
	testkit.Equal(t, "webhooks beyond the limit", refused, 3)
	testkit.Must(t, store.DeleteWebhook(t.Context(), owner.ID, hook.ID))
	hooks, err := store.Webhooks(t.Context(), owner.ID)
	testkit.Must(t, err)
	testkit.Equal(t, "webhooks", len(hooks), schema.MaxWebhooks-1)
	addWebhook(t, store, other.ID, nil)
}

// waiting returns the deliveries that wait for a webhook, as "event subject", and requires that the webhook counts
// their bytes.
func waiting(t *testing.T, store schema.WebhookStore, hook schema.Webhook) (all []string) {
	t.Helper()
	deliveries, err := store.WaitingDeliveries(t.Context(), hook.AccountID, hook.ID, 1<<20)
	testkit.Must(t, err)
	bytes := int64(0)
	for _, d := range deliveries {
		bytes += int64(len(d.Data))
		subject := ""
		if d.Event == schema.EventDomainChanged {
			domain, err := schema.DomainOfEvent(d.Data)
			testkit.Must(t, err)
			subject = fmt.Sprint(domain.Host, " ", domain.Verified, domain.Deleted)
		} else if d.Event != schema.EventTest {
			link, err := schema.LinkOfEvent(d.Data)
			testkit.Must(t, err)
			subject = link.Hash + " " + link.Title
		}
		all = append(all, strings.TrimSpace(d.Event+" "+subject))
	}
	testkit.Equal(t, "waiting bytes", webhookOf(t, store, hook).Waiting, bytes)
	return all
}

func deliversPathModes(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	hook := addWebhook(t, store, owner.ID, nil)
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	testkit.Must(t, store.SetSite(t.Context(), domain.ID, schema.Site{PathMode: schema.PathAppend}, schema.AppLinks{}))
	addLink(t, store, owner.ID, domain.ID, "one")
	testkit.Equal(t, "deliveries", waiting(t, store, hook), []string{"domain.changed go.example.org 1 0",
		"domain.changed go.example.org 1 0", "link.created one"})
	deliveries, err := store.WaitingDeliveries(t.Context(), owner.ID, hook.ID, 3)
	testkit.Must(t, err)
	got, err := schema.LinkOfEvent(deliveries[2].Data)
	testkit.Must(t, err)
	testkit.Equal(t, "mode", got.PathMode(), schema.PathAppend)
}

func deliversChanges(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	all := addWebhook(t, store, owner.ID, nil)
	one := addWebhook(t, store, owner.ID, func(h *schema.Webhook) { h.Hash = "one" })
	tagged := addWebhook(t, store, owner.ID, func(h *schema.Webhook) { h.Tag = "a_b" })
	deleted := addWebhook(t, store, owner.ID, func(h *schema.Webhook) { h.Events = []string{schema.EventLinkDeleted} })
	off := addWebhook(t, store, owner.ID, func(h *schema.Webhook) { h.Active = false })
	addLink(t, store, other.ID, 0, "foreign")

	link := addLink(t, store, owner.ID, 0, "one")
	testkit.Must(t, store.CreateLinks(t.Context(), &schema.LinkBatch{AccountID: owner.ID, Links: []schema.Link{
		{Hash: "two", URL: "https://example.org/", Tags: []string{"axb"}, CreatedAt: epoch},
		{Hash: "three", URL: "https://example.org/", Tags: []string{"a_b"}, CreatedAt: epoch}}}))
	three, err := schema.FindLink(t.Context(), store, 0, "three")
	testkit.Must(t, err)
	expiry := hour(9)
	edit := schema.LinkEdit{Title: new("“Ü”\n"), Tags: &[]string{"x", "y"}, ExpiresAt: &expiry,
		ExpiredURL:   new("https://example.org/e"),
		ForwardQuery: new(true)}
	testkit.Must(t, store.UpdateLink(t.Context(), &link, edit, hour(2)))
	testkit.Must(t, store.UpdateLink(t.Context(), &three, schema.LinkEdit{Tags: &[]string{}}, hour(2)))
	testkit.Must(t, store.UpdateLink(t.Context(), &three, schema.LinkEdit{Title: new("t")}, hour(2)))
	before := link
	testkit.Must(t, store.SetTakenDown(t.Context(), 0, "one", true))
	testkit.Must(t, store.DeleteLink(t.Context(), link, hour(3)))
	_, err = store.RestoreLink(t.Context(), owner.ID, "one", nil, hour(0), hour(3))
	testkit.Must(t, err)
	testkit.Must(t, store.DeleteLink(t.Context(), link, hour(3)))
	addLink(t, store, owner.ID, 0, "one")
	testkit.Must(t, store.SetSuspended(t.Context(), other.ID, true))
	domain := addDomain(t, store, owner.ID, "go.example.org", false)
	testkit.Must(t, store.VerifyDomain(t.Context(), domain.ID, hour(1)))
	testkit.Must(t, store.VerifyDomain(t.Context(), domain.ID, hour(1)))
	testkit.Must(t, store.DeleteDomain(t.Context(), domain.ID))

	testkit.Equal(t, "all", waiting(t, store, all), []string{"link.created one", "link.created two", "link.created three",
		"link.updated one “Ü”", "link.updated three", "link.updated three t", "link.updated one “Ü”", "link.deleted one “Ü”",
		"link.created one “Ü”", "link.deleted one “Ü”", "link.created one", "domain.changed go.example.org 0 0",
		"domain.changed go.example.org 1 0", "domain.changed go.example.org 1 1"})
	testkit.Equal(t, "of one link", waiting(t, store, one),
		[]string{"link.created one", "link.updated one “Ü”", "link.updated one “Ü”", "link.deleted one “Ü”",
			"link.created one “Ü”", "link.deleted one “Ü”", "link.created one"})
	testkit.Equal(t, "with a tag", waiting(t, store, tagged), []string{"link.created three", "link.updated three"})
	testkit.Equal(t, "of one kind", waiting(t, store, deleted), []string{"link.deleted one “Ü”", "link.deleted one “Ü”"})
	testkit.Equal(t, "while it is off", waiting(t, store, off), nil, nilOrEmpty)

	deliveries, err := store.WaitingDeliveries(t.Context(), one.AccountID, one.ID, 3)
	testkit.Must(t, err)
	got, err := schema.LinkOfEvent(deliveries[1].Data)
	testkit.Must(t, err)
	before.AccountID, before.Ordinal, before.Version = 0, 0, 0
	testkit.Equal(t, "link of the event", got, before)
	got, err = schema.LinkOfEvent(deliveries[2].Data)
	testkit.Must(t, err)
	testkit.Equal(t, "it is taken down", got.Stopped, schema.TakenDown)
	if deliveries[0].Message == deliveries[1].Message || time.Since(deliveries[0].At).Abs() > time.Hour {
		t.Errorf("deliveries %+v", deliveries)
	}
}

func failuresAreNotDelivered(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	link := addLink(t, store, owner.ID, domain.ID, "one")
	hook := addWebhook(t, store, owner.ID, nil)
	taken := newLink(owner.ID, domain.ID, "one")
	testkit.WantCode(t, store.CreateLink(t.Context(), &taken), schema.CodeConflict)
	stale := link
	stale.Version--
	testkit.WantCode(t, store.UpdateLink(t.Context(), &stale, schema.LinkEdit{Unchanged: true, URL: new("x")}, hour(1)),
		schema.CodeConflict)
	testkit.WantCode(t, store.DeleteUnchanged(t.Context(), stale, hour(1)), schema.CodeConflict)
	testkit.WantCode(t, store.DeleteDomain(t.Context(), domain.ID), schema.CodeConflict)
	testkit.Equal(t, "waiting", waiting(t, store, hook), nil, nilOrEmpty)
}

func claim(t *testing.T, store schema.WebhookStore, holder string, lease time.Duration) (ids []int64) {
	t.Helper()
	hooks, err := store.ClaimWebhooks(t.Context(), holder, lease, 10)
	testkit.Must(t, err)
	for _, h := range hooks {
		ids = append(ids, h.ID)
	}
	slices.Sort(ids)
	return ids
}

func claimsWebhooks(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	first, second, foreign := addWebhook(t, store, owner.ID, nil), addWebhook(t, store, owner.ID, nil),
		addWebhook(t, store, other.ID, nil)
	testkit.Equal(t, "without deliveries", claim(t, store, "a", longLease), nil, nilOrEmpty)
	testkit.Must(t, store.TestWebhook(t.Context(), owner.ID, first.ID))
	testkit.Must(t, store.TestWebhook(t.Context(), owner.ID, second.ID))
	testkit.Must(t, store.TestWebhook(t.Context(), other.ID, foreign.ID))
	testkit.Must(t, store.SetSuspended(t.Context(), other.ID, true))
	testkit.Equal(t, "claimed", claim(t, store, "a", time.Millisecond), []int64{first.ID, second.ID})
	testkit.Eventually(t, "another holder claims them when the lease ends",
		func() bool { return len(claim(t, store, "b", longLease)) == 2 })
	testkit.Equal(t, "claimed again", claim(t, store, "a", longLease), nil, nilOrEmpty)
	testkit.Must(t, store.ReleaseWebhook(t.Context(), first.ID, "a"))
	testkit.Equal(t, "released by another", claim(t, store, "a", longLease), nil, nilOrEmpty)
	testkit.Must(t, store.ReleaseWebhook(t.Context(), first.ID, "b"))
	testkit.Must(t, store.SetSuspended(t.Context(), other.ID, false))
	won := make([]int, 8)
	concurrently(len(won), func(i int) error {
		hooks, err := store.ClaimWebhooks(t.Context(), fmt.Sprint(i), longLease, 10)
		testkit.Must(t, err)
		won[i] = len(hooks)
		return nil
	})
	slices.Sort(won)
	total := 0
	for _, n := range won {
		total += n
	}
	testkit.Equal(t, "claimed by all together", total, 2)
}

func notesDeliveries(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	hook := addWebhook(t, store, owner.ID, nil)
	for range 4 {
		testkit.Must(t, store.TestWebhook(t.Context(), owner.ID, hook.ID))
	}
	testkit.Equal(t, "claimed", len(claim(t, store, "a", longLease)), 1)
	all, err := store.WaitingDeliveries(t.Context(), hook.AccountID, hook.ID, 10)
	testkit.Must(t, err)
	note := func(holder string, d schema.Delivery, note schema.DeliveryNote, want bool) schema.Webhook {
		t.Helper()
		got, err := store.NoteDelivery(t.Context(), hook.AccountID, hook.ID, holder, d, note)
		testkit.Must(t, err)
		testkit.Equal(t, "noted", got, want)
		return webhookOf(t, store, hook)
	}
	note("b", all[0], schema.DeliveryNote{Delivered: true}, false)
	now := note("a", all[0], schema.DeliveryNote{Delivered: true, Lease: longLease}, true)
	testkit.Equal(t, "waiting bytes", now.Waiting, 6)
	testkit.Equal(t, "the lease goes on", claim(t, store, "b", longLease), nil, nilOrEmpty)

	now = note("a", all[1], schema.DeliveryNote{Error: "answered 500", Pause: time.Hour}, true)
	since := now.FailingSince
	if now.Waiting != 6 || time.Since(since) > testkit.Patience || time.Until(now.NextAt) < time.Hour-testkit.Patience {
		t.Errorf("webhook %+v", now)
	}
	testkit.Equal(t, "claimed during the pause", claim(t, store, "b", longLease), nil, nilOrEmpty)
	testkit.Must(t, store.ReleaseWebhook(t.Context(), hook.ID, "a"))
	now.UpdatedAt = hour(1)
	testkit.Must(t, store.UpdateWebhook(t.Context(), &now))
	testkit.Equal(t, "claimed after an edit", len(claim(t, store, "b", longLease)), 1)
	testkit.Equal(t, "an edit forgets failures", webhookOf(t, store, hook).FailingSince.IsZero(), true)
	note("b", all[1], schema.DeliveryNote{Error: "answered 500"}, true)
	now = note("b", all[1], schema.DeliveryNote{Error: "answered 410", Off: schema.OffGone}, true)
	if now.Active || now.OffReason != schema.OffGone || now.Waiting != 0 || now.Dropped != 2 {
		t.Errorf("webhook %+v", now)
	}
	deliveries, err := store.Deliveries(t.Context(), hook.ID)
	testkit.Must(t, err)
	testkit.Equal(t, "deliveries", len(deliveries), 2)
	testkit.Equal(t, "attempted", deliveries[0].AttemptedAt.IsZero(), false)
	deliveries[0].AttemptedAt = time.Time{}
	testkit.Equal(t, "newest", deliveries[0], schema.Delivery{ID: all[1].ID, Message: all[1].Message,
		Event: schema.EventTest, At: all[1].At,
		Status: schema.DeliveryFailed, Attempts: 3, Error: "answered 410"})
	testkit.Equal(t, "oldest", deliveries[1].Status, schema.DeliveryDelivered)
	testkit.WantCode(t, store.TestWebhook(t.Context(), owner.ID, hook.ID), schema.CodeNotFound)

	now.Active = true
	testkit.Must(t, store.UpdateWebhook(t.Context(), &now))
	testkit.Equal(t, "reason after an edit", webhookOf(t, store, hook).OffReason, "")
	testkit.Must(t, store.TestWebhook(t.Context(), owner.ID, hook.ID))
	now.Active = false
	testkit.Must(t, store.UpdateWebhook(t.Context(), &now))
	now = webhookOf(t, store, hook)
	if now.Dropped != 3 || now.Waiting != 0 {
		t.Errorf("webhook %+v", now)
	}
}

func keepsAnswers(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	hook := addWebhook(t, store, owner.ID, nil)
	testkit.Must(t, store.TestWebhook(t.Context(), owner.ID, hook.ID))
	claim(t, store, "a", longLease)
	all, err := store.WaitingDeliveries(t.Context(), hook.AccountID, hook.ID, 1)
	testkit.Must(t, err)
	for _, note := range []schema.DeliveryNote{
		{Error: "answered 500", Answer: schema.Answer{Status: 500, Took: 1234 * time.Millisecond, Text: "“Ü”\n\x1b"}},
		{Error: "no answer", Answer: schema.Answer{Took: 20 * time.Second}},
		{Delivered: true, Answer: schema.Answer{Status: 204}},
	} {
		before := webhookOf(t, store, hook)
		noted, err := store.NoteDelivery(t.Context(), hook.AccountID, hook.ID, "a", all[0], note)
		testkit.Must(t, err)
		testkit.Equal(t, "noted", noted, true)
		one, err := store.Delivery(t.Context(), hook.ID, all[0].Message)
		testkit.Must(t, err)
		testkit.Equal(t, "answer", one.Answer, note.Answer)
		testkit.Equal(t, "data", one.Data, "{}")
		now := webhookOf(t, store, hook)
		testkit.Equal(t, "error of the last attempt", now.LastError, note.Error)
		if time.Since(now.AttemptedAt).Abs() > testkit.Patience || now.AttemptedAt.Before(before.AttemptedAt) {
			t.Errorf("the last attempt was at %s", now.AttemptedAt)
		}
		testkit.Equal(t, "attempted", one.AttemptedAt.IsZero(), false)
	}
	for id, message := range map[int64]string{hook.ID: "msg_none", hook.ID + 1: all[0].Message} {
		_, err := store.Delivery(t.Context(), id, message)
		testkit.WantCode(t, err, schema.CodeNotFound)
	}
}

func editsWhileSending(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	hook := addWebhook(t, store, owner.ID, nil)
	testkit.Must(t, store.TestWebhook(t.Context(), owner.ID, hook.ID))
	attempt := func(lease time.Duration) {
		t.Helper()
		testkit.Eventually(t, "an attempt begins", func() bool { return len(claim(t, store, "a", lease)) == 1 })
		deliveries, err := store.WaitingDeliveries(t.Context(), hook.AccountID, hook.ID, 1)
		testkit.Must(t, err)
		testkit.Must(t, store.UpdateWebhook(t.Context(), &hook))
		noted, err := store.NoteDelivery(t.Context(), hook.AccountID, hook.ID,
			"a", deliveries[0], schema.DeliveryNote{Delivered: true})
		testkit.Must(t, err)
		testkit.Equal(t, "noted what was sent to the former URL", noted, false)
	}
	attempt(time.Millisecond)
	attempt(longLease)
	testkit.Equal(t, "claimed while an attempt may be under way", claim(t, store, "b", longLease), nil, nilOrEmpty)
}

func boundsDeliveries(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	link := addLink(t, store, owner.ID, 0, "one")
	hook := addWebhook(t, store, owner.ID, nil)
	title := strings.Repeat("x", 13<<20)
	for n := range 6 {
		testkit.Must(t, store.UpdateLink(t.Context(), &link, schema.LinkEdit{Title: &title}, hour(n)))
	}
	testkit.Must(t, store.UpdateLink(t.Context(), &link, schema.LinkEdit{Title: new("small")}, hour(9)))
	now := webhookOf(t, store, hook)
	if now.Dropped != 2 || now.Waiting > schema.MaxWebhookWaiting || now.Waiting < 4*13<<20 {
		t.Errorf("%d bytes wait, %d deliveries were dropped", now.Waiting, now.Dropped)
	}
	deliveries, err := store.Deliveries(t.Context(), hook.ID)
	testkit.Must(t, err)
	testkit.Equal(t, "deliveries", len(deliveries), 5)
}

func resendsDeliveries(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	hook := addWebhook(t, store, owner.ID, nil)
	const more = 3
	var all []schema.Delivery
	for _, n := range []int{schema.MaxDeliveries, more} {
		for range n {
			testkit.Must(t, store.TestWebhook(t.Context(), owner.ID, hook.ID))
		}
		claim(t, store, "a", longLease)
		deliveries, err := store.WaitingDeliveries(t.Context(), hook.AccountID, hook.ID, 1<<10)
		testkit.Must(t, err)
		if n == schema.MaxDeliveries {
			testkit.WantCode(t, store.TestWebhook(t.Context(), owner.ID, hook.ID), schema.CodeNotFound)
		}
		for _, d := range deliveries {
			_, err := store.NoteDelivery(t.Context(), hook.AccountID, hook.ID,
				"a", d, schema.DeliveryNote{Delivered: true, Lease: longLease})
			testkit.Must(t, err)
		}
		all = append(all, deliveries...)
	}
	kept, err := store.Deliveries(t.Context(), hook.ID)
	testkit.Must(t, err)
	testkit.Equal(t, "kept", len(kept), schema.MaxDeliveries)
	testkit.WantCode(t, store.ResendDelivery(t.Context(), hook.AccountID, hook.ID,
		all[0].Message), schema.CodeNotFound)
	again := all[more]
	for range 2 {
		testkit.Must(t, store.ResendDelivery(t.Context(), hook.AccountID, hook.ID, again.Message))
	}
	waits, err := store.WaitingDeliveries(t.Context(), hook.AccountID, hook.ID, 10)
	testkit.Must(t, err)
	testkit.Equal(t, "waiting again", len(waits), 1)
	testkit.Equal(t, "message", waits[0].Message, again.Message)
	testkit.Equal(t, "waiting", waiting(t, store, hook), []string{schema.EventTest})
	now := webhookOf(t, store, hook)
	now.Active = false
	testkit.Must(t, store.UpdateWebhook(t.Context(), &now))
	testkit.WantCode(t, store.ResendDelivery(t.Context(), hook.AccountID, hook.ID,
		kept[0].Message), schema.CodeNotFound)
}
