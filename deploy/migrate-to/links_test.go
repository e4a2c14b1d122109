//go:build engines

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"linkstream/ingest/count"
	"linkstream/schema"
	"linkstream/schema/linkstore"
	"linkstream/schema/linkstore/sqlite"
	"linkstream/schema/testkit"
)

var (
	secret = [32]byte{1} // digest of each secret, key of each call
	part   = []byte("https://example.com/\x00\xff")
	holder = schema.Incarnation{7}
)

// fillLinks puts a row into every table of the link store.
func (e *env) fillLinks(t *testing.T, links *linkstore.Store, account schema.Account, now time.Time) {
	t.Helper()
	ctx, later := t.Context(), now.Add(time.Hour)
	token := schema.Token{AccountID: account.ID, Digest: secret, Scopes: schema.ScopeWebhooks, CreatedAt: now,
		ExpiresAt: later}
	testkit.Must(t, links.CreateToken(ctx, &token))
	_, _, err := links.LeaseRequests(ctx, token.ID, now.Truncate(time.Minute), 10)
	testkit.Must(t, err)
	session := schema.Session{AccountID: account.ID, Digest: secret, UserAgent: "Browser", CreatedAt: now, SeenAt: now,
		ExpiresAt: later}
	testkit.Must(t, links.CreateSession(ctx, &session, account.PasswordHash))
	_, err = links.CountAttempts(ctx, []schema.Attempts{{Key: secret, Window: now.Truncate(time.Minute), N: 1}})
	testkit.Must(t, err)

	domain := schema.Domain{AccountID: account.ID, Host: "go.example.org", Challenge: "prove", CreatedAt: now,
		VerifiedAt: now}
	testkit.Must(t, links.CreateDomain(ctx, &domain))
	testkit.Must(t, links.SetSite(ctx, domain.ID, schema.Site{RootURL: "https://example.org/"},
		schema.AppLinks{Apple: `{"applinks": {}}`}))
	call := schema.LinkBatch{AccountID: account.ID, Call: &schema.IdempotentCall{AccountID: account.ID, Key: secret,
		Request: secret, At: now},
		Links: []schema.Link{
			{DomainID: domain.ID, Hash: "limited", URL: "https://example.com/ü", Tags: []string{"spring"}, Active: true,
				CreatedAt: now,
				ExpiresAt: later, Behaviour: &schema.Behaviour{MaxClicks: 1000}},
			{Hash: "deleted", URL: "https://example.com/", Active: true, CreatedAt: now},
			{Hash: "former/1", URL: "https://example.com/", Active: true, CreatedAt: now, ExternalID: "order/4711"}},
		Answer: func([]schema.Link, []error) ([]byte, error) { return []byte("answer"), nil }}
	testkit.Must(t, links.CreateLinks(ctx, &call))
	testkit.Must(t, links.DeleteLink(ctx, call.Links[1], now))
	names := call.Links[2].Names().Rename("renamed")
	testkit.Must(t, links.UpdateLink(ctx, &call.Links[2], schema.LinkEdit{Names: &names}, now))
	_, err = links.NoteTargets(ctx, account.ID, 100)
	testkit.Must(t, err)
	testkit.Must(t, links.AddLeaseHolder(ctx, holder))
	_, err = links.TakeLease(ctx, holder, schema.LimitLease{LinkID: call.Links[0].ID, Call: 1})
	testkit.Must(t, err)

	testkit.Must(t, links.PutImport(ctx, schema.ImportStatus{AccountID: account.ID, ID: "import", Status: "{}",
		Errors: "2,“ü”\n", Requested: true, UpdatedAt: now}, now))
	testkit.Must(t, links.PutCertificateFile(ctx, "a/b", part))
	testkit.Must(t,
		links.NoteCertificate(ctx, schema.CertificateState{Host: domain.Host, AttemptedAt: now, Error: "refused"}))
	_, err = links.LockCertificate(ctx, domain.Host, "holder", time.Hour)
	testkit.Must(t, err)

	for i, share := range []schema.Share{
		{LinkID: e.linkID, Hash: hash, DomainID: new(int64(0)), ExpiresAt: later, PasswordHash: "$argon2id$x",
			HideTargets: true, TimeZone: "Asia/Tokyo"},
		{DomainID: &domain.ID, Tag: "spring"},
	} {
		share.AccountID, share.Digest, share.CreatedAt = account.ID, [32]byte{byte(i)}, now
		testkit.Must(t, links.CreateShare(ctx, &share))
	}
}

// newWebhook creates a webhook of all events, with one failed delivery.
func newWebhook(t *testing.T, links *linkstore.Store, account schema.Account, now time.Time) {
	t.Helper()
	hook := schema.Webhook{AccountID: account.ID, URL: "https://example.net/", Active: true, Secret: "whsec_new",
		CreatedAt: now,
		Events: []string{schema.EventDomainChanged, schema.EventLinkClicked, schema.EventLinkCreated,
			schema.EventLinkDeleted}}
	testkit.Must(t, links.CreateWebhook(t.Context(), &hook))
	testkit.Must(t, links.RotateSecret(t.Context(), account.ID, hook.ID, "whsec_newer", now.Add(time.Hour)))
	testkit.Must(t, links.TestWebhook(t.Context(), account.ID, hook.ID))
	_, err := links.ClaimWebhooks(t.Context(), "holder", time.Minute, 1)
	testkit.Must(t, err)
	waiting, err := links.WaitingDeliveries(t.Context(), hook.AccountID, hook.ID, 1)
	testkit.Must(t, err)
	_, err = links.NoteDelivery(t.Context(), hook.AccountID, hook.ID, "holder", waiting[0],
		schema.DeliveryNote{Error: "The receiver answered 500.",
			Answer: schema.Answer{Status: 500, Took: time.Second, Text: "“ü”"}})
	testkit.Must(t, err)
}

// wantEveryTable requires that the link store of the service has a row in every table.
func (e *env) wantEveryTable(t *testing.T) {
	t.Helper()
	testkit.Must(t, sqlite.ExportLinks(t.Context(), e.from.Links(), func(table schema.TableRows) error {
		if table.Name == "shared_values" { // their move is tested with the stores
			return nil
		}
		for range table.Rows {
			return nil
		}
		return fmt.Errorf("this test has no row of table %s", table.Name)
	}))
}

// owned returns what an account has in a link store, as the services read it.
func owned(t *testing.T, links schema.Database, now time.Time) (all []any) {
	t.Helper()
	ctx := t.Context()
	read := func(value any, err error) {
		t.Helper()
		testkit.Must(t, err)
		all = append(all, value)
	}
	account, err := links.AccountByEmail(ctx, owner)
	read(account, err)
	read(links.Tokens(ctx, account.ID))
	read(links.ExternalLink(ctx, account.ID, "order/4711", now))
	left, err := links.NoteTargets(ctx, account.ID, 1)
	testkit.Equal(t, "links whose targets are not noted", left, 0)
	testkit.Must(t, err)
	read(links.Sessions(ctx, account.ID, now))
	domains, err := links.Domains(ctx, account.ID)
	read(domains, err)
	read(links.AppLinks(ctx, domains[0].ID))
	read(schema.FindLink(ctx, links, 0, hash))
	read(schema.FindLink(ctx, links, 0, "deleted"))
	read(schema.FindLink(ctx, links, 0, "former/1"))
	limited, err := schema.FindLink(ctx, links, domains[0].ID, "limited")
	read(limited, err)
	read(links.LimitUse(ctx, []int64{limited.ID}))
	read(links.RecordedCall(ctx, schema.IdempotentCall{AccountID: account.ID, Key: secret, At: now}))
	read(links.ImportStatus(ctx, account.ID))
	read(links.ImportErrors(ctx, account.ID))
	read(links.CertificateFile(ctx, "a/b"))
	read(links.CertificateState(ctx, domains[0].Host))
	shares, err := links.Shares(ctx, account.ID)
	read(shares, err)
	for _, share := range shares {
		found, _, err := links.ShareByDigest(ctx, share.Digest, now)
		read(found, err)
	}
	hooks, err := links.Webhooks(ctx, account.ID)
	read(hooks, err)
	deliveries, err := links.Deliveries(ctx, hooks[0].ID)
	read(deliveries, err)
	for _, d := range deliveries {
		read(links.Delivery(ctx, hooks[0].ID, d.Message))
	}
	return all
}

// wantWaiting requires that the webhook's deliveries wait in the new store as they did in the old one.
func (e *env) wantWaiting(t *testing.T, hook schema.Webhook) {
	t.Helper()
	waiting, err := e.links.WaitingDeliveries(t.Context(), hook.AccountID, hook.ID, 100)
	testkit.Must(t, err)
	var events []string
	size := int64(0)
	for _, d := range waiting {
		size += int64(len(d.Data))
		event := d.Event
		if d.Event == schema.EventLinkCreated || d.Event == schema.EventLinkDeleted {
			link, err := schema.LinkOfEvent(d.Data)
			testkit.Must(t, err)
			event += " " + link.Hash
		}
		events = append(events, event)
	}
	testkit.Equal(t, "waiting", events, []string{"webhook.test", "link.created abc", "link.clicked", "domain.changed",
		"domain.changed", "link.created limited", "link.created deleted", "link.created former/1", "link.deleted deleted"})
	testkit.Equal(t, "bytes", size, hook.Waiting)
	testkit.Equal(t, "attempts", waiting[0].Attempts, 1)
	testkit.Equal(t, "clicks", strings.Count(waiting[2].Data, "\n"), counted)
}

// wantDelivered lets the new services deliver the clicks in the topic to the webhook, and requires that it gets each
// click once.
func (e *env) wantDelivered(t *testing.T, hook schema.Webhook) {
	t.Helper()
	at, err := e.links.QueuedPosition(t.Context(), 0)
	testkit.Must(t, err)
	b := count.NewBuilder(nil, e.log)
	b.Late = true
	b.Batch.Reset(0, at.Next)
	testkit.Equal(t, "position", at.Next, 0) // the topic is another one
	b.Batch.Epoch, b.Batch.BaseEpoch, b.Batch.Next = at.Epoch, at.Epoch, recorded
	repeated, err := b.AddLane(t.Context(), &e.topic.sent, e.links.QueuedMarks)
	testkit.Must(t, err)
	testkit.Equal(t, "clicks that the old service has told of", repeated, counted)
	testkit.Must(t, e.links.QueueClicks(t.Context(), &b.Batch))
	waiting, err := e.links.WaitingDeliveries(t.Context(), hook.AccountID, hook.ID, 100)
	testkit.Must(t, err)
	heard := map[string]int{}
	for _, d := range waiting {
		for line := range strings.Lines(d.Data) {
			var click schema.ClickEvent
			if d.Event == schema.EventLinkClicked {
				testkit.Must(t, json.Unmarshal([]byte(line), &click))
				heard[click.ID]++
			}
		}
	}
	testkit.Equal(t, "clicks", len(heard), recorded)
	for id, times := range heard {
		if times != 1 {
			t.Errorf("click %s is in %d deliveries", id, times)
		}
	}
}

// TestMoveLinks requires that everything in the link store moves.
func TestMoveLinks(t *testing.T) {
	e := newEnv(t)
	e.wantEveryTable(t)
	old, err := sqlite.Open(t.Context(), e.from.Links())
	testkit.Must(t, err)
	defer testkit.Close(t, old)
	now := time.Now()
	want := owned(t, old, now)
	testkit.Must(t, e.run(t.Context()))
	testkit.Equal(t, "what the account has", owned(t, e.links, now), want)
	hooks, err := e.links.Webhooks(t.Context(), want[0].(schema.Account).ID)
	testkit.Must(t, err)
	e.wantWaiting(t, hooks[0])
	e.wantDelivered(t, hooks[0])
}
