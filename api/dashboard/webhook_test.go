package dashboard_test

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"linkstream/api/apiservice"
	"linkstream/api/auth"
	"linkstream/api/webhook"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// receiversHere lets webhooks call this machine.
func receiversHere(cfg *apiservice.Config) {
	if err := cfg.WebhookAllow.Set("127.0.0.0/8"); err != nil {
		panic(err)
	}
}

var hookSecret = regexp.MustCompile(`id="secret" type="text" readonly value="(whsec_[^"]+)"`)

// hooks returns the account's webhooks.
func (s *testService) hooks(t *testing.T) []schema.Webhook {
	t.Helper()
	hooks, err := s.links.Webhooks(t.Context(), s.account.ID)
	testkit.Must(t, err)
	return hooks
}

func hookPath(hook schema.Webhook) string { return "/dashboard/webhooks/" + id(hook.ID) }

func TestWebhookIsAdded(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(t)
	b.get("/dashboard/webhooks").want(t, http.StatusOK, "No webhooks yet", "Add a webhook")
	b.get("/dashboard/webhooks/new").want(t, http.StatusOK, "link.clicked", "All links")
	fields := []string{"newest", "0", "url", "hooks.example.net/in", "events", "link.created", "events", "link.clicked",
		"of", "tag", "tag", "Spring", "people_only", "true"}
	made := b.post("/dashboard/webhooks/new", fields...)
	made.want(t, http.StatusOK, "The webhook was added", "shown only once", `from "standardwebhooks"`)
	match := hookSecret.FindStringSubmatch(made.body)
	if match == nil {
		t.Fatal(made.body)
	}
	hook := s.hooks(t)[0]
	testkit.Equal(t, "secret", html.UnescapeString(match[1]), hook.Secret)
	testkit.Equal(t, "webhook", fmt.Sprint(hook.URL, hook.Events, hook.Tag, hook.Hash, hook.PeopleOnly, hook.Active),
		"https://hooks.example.net/in[link.clicked link.created]springtrue true")
	t.Run("once, though the page is reloaded", func(t *testing.T) {
		b.post("/dashboard/webhooks/new", fields...).want(t, http.StatusUnprocessableEntity, "Another webhook was created")
		testkit.Equal(t, "webhooks", len(s.hooks(t)), 1)
	})
	for _, path := range []string{"/dashboard/webhooks", hookPath(hook)} {
		page := b.get(path)
		page.want(t, http.StatusOK, hook.URL, "Links with the tag “spring”", "on")
		if strings.Contains(page.body, hook.Secret) {
			t.Errorf("%s shows the secret", path)
		}
	}
	t.Run("up to a number", func(t *testing.T) {
		for range schema.MaxWebhooks - 1 {
			another := hook
			testkit.Must(t, s.links.CreateWebhook(t.Context(), &another))
		}
		page := b.get("/dashboard/webhooks")
		page.want(t, http.StatusOK, "which is the maximum")
		page.lacks(t, "/webhooks/new")
		b.post("/dashboard/webhooks/new", "newest", "999", "url", "https://a.example/", "events", "link.created").
			want(t, http.StatusConflict, webhook.TooMany)
	})
}

func TestWebhookFormsAreChecked(t *testing.T) {
	s := start(t)
	b := s.signedIn(t)
	link := s.addLink(t, "known", "https://example.org/")
	ok := []string{"newest", "9", "url", "https://hooks.example.net/"}
	for _, c := range []struct {
		name, field, problem string
		fields               []string
	}{
		{"no URL", "url", "not a valid URL", []string{"events", "link.created"}},
		{"http", "url", "must begin with https://", []string{"url", "http://hooks.example.net/", "events", "link.created"}},
		{"this machine", "url", "must lead to a public address",
			[]string{"url", "https://127.0.0.1/", "events", "link.created"}},
		{"this service", "url", "not one of this service", []string{"url", "https://sho.rt/", "events", "link.created"}},
		{"no event", "events", "The events must be some of", ok},
		{"an unknown event", "events", "The events must be some of", append(ok, "events", "link.lost")},
		{"an empty tag", "tag", "tag", append(ok, "events", "link.created", "of", "tag")},
		{"no link", "hash", "You have no such link.", append(ok, "events", "link.created", "of", "link")},
		{"an unknown link", "hash", "You have no such link.",
			append(ok, "events", "link.created", "of", "link", "hash", "http://sho.rt/unknown")},
		{"words", "hash", "You have no such link.",
			append(ok, "events", "link.created", "of", "link", "hash", strings.Repeat("known link ", 99))},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := b.post("/dashboard/webhooks/new", c.fields...)
			a.want(t, http.StatusUnprocessableEntity, c.problem)
			if !strings.Contains(a.body, `id="`+c.field+`-problem"`) {
				t.Error(a.body)
			}
		})
	}
	testkit.Equal(t, "webhooks", len(s.hooks(t)), 0)
	for _, typed := range []string{"known", "KNOWN", "sho.rt/known", "http://sho.rt/known?utm=x"} {
		t.Run("a link as "+typed, func(t *testing.T) {
			b.post("/dashboard/webhooks/new", "newest", "9", "url", "https://hooks.example.net/", "events", "link.clicked",
				"of", "link", "hash", typed, "tag", "ignored").want(t, http.StatusOK, "The webhook was added")
			hooks := s.hooks(t)
			hook := hooks[len(hooks)-1]
			testkit.Equal(t, "of", hook.Hash+hook.Tag, "known")
		})
	}
	t.Run("what stays is not checked again", func(t *testing.T) {
		testkit.Must(t, s.links.DeleteLink(t.Context(), link, time.Now()))
		hook := s.hooks(t)[0]
		b.get(hookPath(hook)).want(t, http.StatusOK, "sho.rt/known")
		b.post(hookPath(hook), "url", hook.URL, "events", "link.deleted", "of", "link", "hash", "sho.rt/known").
			wantTo(t, hookPath(hook))
		hook = s.hooks(t)[0]
		testkit.Equal(t, "webhook", fmt.Sprint(hook.Events, hook.Hash, hook.PeopleOnly), "[link.deleted]knownfalse")
		b.post(hookPath(hook), "url", hook.URL, "events", "link.deleted", "tag", "old", "hash", "old").
			wantTo(t, hookPath(hook))
		testkit.Equal(t, "hash", s.hooks(t)[0].Hash, "")
		a := b.post(hookPath(hook), "url", "https://10.0.0.1/", "events", "link.deleted")
		a.want(t, http.StatusUnprocessableEntity, "must lead to a public address", "Settings")
		testkit.Equal(t, "URL", s.hooks(t)[0].URL, hook.URL)
		hook.URL = "http://10.0.0.1/" // the operator has allowed it once
		testkit.Must(t, s.links.UpdateWebhook(t.Context(), &hook))
		b.post(hookPath(hook), "url", hook.URL, "events", "link.deleted").wantTo(t, hookPath(hook))
	})
}

// A receiver's answer is a stranger's text.
const strange = hostile + "\x1b[2J\u202e"

func TestWebhookIsTested(t *testing.T) {
	t.Parallel()
	s := start(t, receiversHere, unpaced)
	b := s.signedIn(t)
	status := http.StatusTeapot
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, strange)
	}))
	t.Cleanup(receiver.Close)
	b.post("/dashboard/webhooks/new", "newest", "0", "url", receiver.URL+"/?"+"<b>", "events", "link.created").
		want(t, http.StatusOK, "The webhook was added")
	hook := s.hooks(t)[0]
	b.get(hookPath(hook)).want(t, http.StatusOK, "Nothing was sent yet")
	b.post(hookPath(hook)+"/test").wantTo(t, hookPath(hook)+"#deliveries")
	part := hookPath(hook) + "?part=deliveries"
	testkit.Eventually(t, "the page shows the answer", func() bool {
		return strings.Contains(b.get(part).text(), "webhook.test") && strings.Contains(b.get(part).text(), "418 in ")
	})
	b.get(part).want(t, http.StatusOK, "retrying", "failing since")
	b.get("/dashboard/webhooks").want(t, http.StatusOK, "failing", "The receiver answered 418.", "1 KiB")
	deliveries, err := s.links.Deliveries(t.Context(), hook.ID)
	testkit.Must(t, err)
	path := hookPath(hook) + "/deliveries/" + deliveries[0].Message
	page := b.get(path)
	page.want(t, http.StatusOK, "418 in ", "The receiver answered 418.", `"type": "webhook.test"`, deliveries[0].Message,
		hostile, `␛[2J\u202e`)
	for _, wrong := range []string{"<img src=x", "<script>alert", `"'>`, "\x1b", "\u202e"} {
		if strings.Contains(page.body, wrong) {
			t.Errorf("the page has %q:\n%s", wrong, page.body)
		}
	}
	b.get(hookPath(hook)+"/deliveries/msg_none").want(t, http.StatusNotFound)
	vicky := s.addAccount(t, "vicky@example.org")
	other := s.browser(t)
	other.signIn(vicky.Email, password)
	other.get(path).want(t, http.StatusNotFound)
	for _, action := range []string{"", "/active", "/test", "/rotate", "/delete", "/resend"} {
		other.post(hookPath(hook)+action, "delivery", deliveries[0].Message).want(t, http.StatusNotFound)
	}
	testkit.Equal(t, "webhooks", len(s.hooks(t)), 1)
}

func TestWebhookIsSwitchedRotatedAndDeleted(t *testing.T) {
	s := start(t)
	b := s.signedIn(t)
	_, token := auth.NewToken(s.account.ID, "script")
	testkit.Must(t, s.links.CreateToken(t.Context(), &token))
	hook := schema.Webhook{AccountID: s.account.ID, URL: "https://hooks.example.org/<b>", TokenID: token.ID,
		Events: []string{schema.EventLinkCreated}, Active: true, Secret: "whsec_bmV3", CreatedAt: time.Now()}
	testkit.Must(t, s.links.CreateWebhook(t.Context(), &hook))
	path := hookPath(hook)
	b.post(path+"/active", "active", "false").wantTo(t, path)
	b.follow().want(t, http.StatusOK, "The webhook is off.", "Switch on")
	now := s.hooks(t)[0]
	testkit.Equal(t, "on, and ends with a token", fmt.Sprint(now.Active, now.TokenID), "false 0")
	b.post(path+"/test").want(t, http.StatusUnprocessableEntity, webhook.NoRoom)
	b.post(path+"/resend", "delivery", "x").want(t, http.StatusUnprocessableEntity, webhook.IsOff)
	b.post(path+"/active", "active", "true").wantTo(t, path)
	testkit.Equal(t, "on", s.hooks(t)[0].Active, true)
	b.post(path+"/resend", "delivery", "x").want(t, http.StatusNotFound)

	made := b.post(path + "/rotate")
	made.want(t, http.StatusOK, "The new secret", "The former secret signs beside it for 24 hours")
	now = s.hooks(t)[0]
	testkit.Equal(t, "secret", html.UnescapeString(hookSecret.FindStringSubmatch(made.body)[1]), now.Secret)
	testkit.Equal(t, "former secret", now.OldSecret, "whsec_bmV3")
	if left := time.Until(now.OldSecretUntil); left < 23*time.Hour || left > 24*time.Hour {
		t.Errorf("the former secret signs for %s", left)
	}
	b.post(path+"/delete").wantTo(t, "/dashboard/webhooks")
	b.follow().want(t, http.StatusOK, "The webhook was deleted.", "No webhooks yet")
}

// note notes the outcome of an attempt at the first delivery that waits.
func (s *testService) note(t *testing.T, hook schema.Webhook, note schema.DeliveryNote) {
	t.Helper()
	waiting, err := s.links.WaitingDeliveries(t.Context(), hook.AccountID, hook.ID, 1)
	testkit.Must(t, err)
	held, err := s.links.NoteDelivery(t.Context(), hook.AccountID, hook.ID,
		"", waiting[0], note) // "": nobody has claimed it
	testkit.Must(t, err)
	testkit.Equal(t, "noted", held, true)
}

func TestWebhooksThatAreOffAreShown(t *testing.T) {
	s := start(t)
	b := s.signedIn(t)
	hook := schema.Webhook{AccountID: s.account.ID, URL: "https://hooks.example.org/<b>",
		Events: []string{schema.EventLinkCreated}, Active: true,
		Secret: "whsec_bmV3", CreatedAt: time.Now().Add(time.Hour), UpdatedAt: time.Now()} // not sent to before
	testkit.Must(t, s.links.CreateWebhook(t.Context(), &hook))
	for range 3 {
		testkit.Must(t, s.links.TestWebhook(t.Context(), s.account.ID, hook.ID))
	}
	s.note(t, hook, schema.DeliveryNote{Pause: time.Hour})
	b.get("/dashboard").lacks(t, "was switched off")
	s.note(t, hook, schema.DeliveryNote{Error: "The receiver answered 500.", Off: schema.OffFailing})
	page := b.get("/dashboard")
	page.want(t, http.StatusOK, "The webhook https://hooks.example.org/<b> was switched off",
		"its receiver has failed for three days", "2 deliveries were dropped", "See what happened")
	if !strings.Contains(page.body, `href="`+hookPath(hook)+`"`) {
		t.Error("the overview does not lead to the webhook")
	}
	b.get("/dashboard/webhooks").want(t, http.StatusOK, "switched off after three days of failures")
	b.get(hookPath(hook)).want(t, http.StatusOK, "For three days no delivery succeeded", "The receiver answered 500.",
		"Switch it on again")
	b.post(hookPath(hook)+"/active", "active", "true").wantTo(t, hookPath(hook))
	b.get("/dashboard").lacks(t, "was switched off")
	deliveries, err := s.links.Deliveries(t.Context(), hook.ID)
	testkit.Must(t, err)
	b.post(hookPath(hook)+"/resend", "delivery", deliveries[0].Message).wantTo(t, hookPath(hook)+"#deliveries")
	deliveries, err = s.links.Deliveries(t.Context(), hook.ID)
	testkit.Must(t, err)
	testkit.Equal(t, "status", deliveries[0].Status, schema.DeliveryWaiting)
}

func TestLargePayloadsAreCut(t *testing.T) {
	s := start(t)
	b := s.signedIn(t)
	hook := schema.Webhook{AccountID: s.account.ID, URL: "https://hooks.example.invalid/",
		Events: []string{schema.EventLinkCreated}, Active: true, Secret: "whsec_bmV3", CreatedAt: time.Now()}
	testkit.Must(t, s.links.CreateWebhook(t.Context(), &hook))
	link := schema.Link{AccountID: s.account.ID, Hash: "large", URL: "https://example.org/", Active: true,
		Title: strings.Repeat("“ü", 1<<14), CreatedAt: s.now().UTC()}
	testkit.Must(t, s.links.CreateLink(t.Context(), &link))
	deliveries, err := s.links.Deliveries(t.Context(), hook.ID)
	testkit.Must(t, err)
	page := b.get(hookPath(hook) + "/deliveries/" + deliveries[0].Message)
	page.want(t, http.StatusOK, "“ü“ü", "Cut: these are the first 16 KiB.")
	if len(page.body) > 40<<10 || strings.Contains(page.body, "\uFFFD") {
		t.Errorf("%d bytes", len(page.body))
	}
}

func TestWebhookPageIsSmall(t *testing.T) {
	s := start(t)
	b := s.signedIn(t)
	hook := schema.Webhook{AccountID: s.account.ID, URL: "https://hooks.example.invalid/",
		Events: []string{schema.EventLinkCreated}, Active: true, Secret: "whsec_bmV3", CreatedAt: time.Now()}
	testkit.Must(t, s.links.CreateWebhook(t.Context(), &hook))
	for range schema.MaxDeliveries {
		testkit.Must(t, s.links.TestWebhook(t.Context(), s.account.ID, hook.ID))
	}
	for range schema.MaxDeliveries {
		s.note(t, hook, schema.DeliveryNote{Delivered: true, Answer: schema.Answer{Status: 200}})
	}
	page := b.get(hookPath(hook))
	testkit.Equal(t, "deliveries", strings.Count(page.body, ">Resend<"), 25)
	names := regexp.MustCompile(` aria-label="Resend webhook.test of ([^"]+)"`).FindAllString(page.body, -1)
	slices.Sort(names)
	if n := len(slices.Compact(names)); n < 2 { // deliveries of one millisecond share a name
		t.Errorf("the buttons have %d names", n)
	}
	if len(page.body) > 40<<10 {
		t.Errorf("%d bytes", len(page.body))
	}
	all := b.get(hookPath(hook) + "?deliveries=all")
	if !strings.Contains(all.body, `?deliveries=all&amp;part=deliveries"`) {
		t.Error("the script asks for some deliveries of a page that has all")
	}
	for _, query := range []string{"?deliveries=all", "?part=deliveries&deliveries=all"} {
		testkit.Equal(t, query, strings.Count(b.get(hookPath(hook)+query).body, ">Resend<"), schema.MaxDeliveries)
	}
}
