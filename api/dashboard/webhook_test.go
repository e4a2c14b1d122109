package dashboard_test

import (
	"net/http"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestWebhooksAreShown(t *testing.T) {
	s := start(t)
	b := s.signedIn(t)
	b.get("/dashboard/account").lacks(t, "Webhooks")
	hook := schema.Webhook{AccountID: s.account.ID, URL: "https://hooks.example.org/<b>",
		Events: []string{schema.EventLinkCreated}, Active: true,
		Secret: "whsec_bmV3", CreatedAt: time.Now().Add(time.Hour), UpdatedAt: time.Now()} // not sent to before
	testkit.Must(t, s.links.CreateWebhook(t.Context(), &hook))
	for range 3 {
		testkit.Must(t, s.links.TestWebhook(t.Context(), s.account.ID, hook.ID))
	}
	note := func(note schema.DeliveryNote) {
		t.Helper()
		waiting, err := s.links.WaitingDeliveries(t.Context(), hook.AccountID, hook.ID, 1)
		testkit.Must(t, err)
		held, err := s.links.NoteDelivery(t.Context(), hook.AccountID, hook.ID,
			"", waiting[0], note) // "": nobody has claimed it
		testkit.Must(t, err)
		testkit.Equal(t, "noted", held, true)
	}
	b.get("/dashboard/account").want(t, http.StatusOK, "https://hooks.example.org/<b> link.created On 0")
	note(schema.DeliveryNote{Pause: time.Hour})
	b.get("/dashboard/account").want(t, http.StatusOK, "link.created Failing since")
	b.get("/dashboard").lacks(t, "was switched off")
	note(schema.DeliveryNote{Off: schema.OffFailing})
	b.get("/dashboard/account").want(t, http.StatusOK, "link.created Off 2")
	b.get("/dashboard").want(t, http.StatusOK, "The webhook https://hooks.example.org/<b> was switched off",
		"its receiver has failed for three days", "2 deliveries were dropped")
}
