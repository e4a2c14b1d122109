package admin_test

import (
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestLinkOff(t *testing.T) {
	c := newCLIWithAccounts(t)
	owner, err := c.AccountByEmail(t.Context(), "a@example.org")
	testkit.Must(t, err)
	id := number(t, c.prints(t, "domain add a@example.org go.example.com --verified"))
	for _, domainID := range []int64{0, id} {
		link := schema.Link{AccountID: owner.ID, DomainID: domainID, Hash: "abc", URL: "https://example.com/", Active: true,
			CreatedAt: time.Now()}
		testkit.Must(t, c.CreateLink(t.Context(), &link))
	}
	wantStops := func(t *testing.T, onDefault, onDomain schema.Stop) {
		t.Helper()
		for domainID, want := range map[int64]schema.Stop{0: onDefault, id: onDomain} {
			link, err := schema.FindLink(t.Context(), c, domainID, "abc")
			if err != nil || link.Stopped != want || !link.Active {
				t.Errorf("%+v, %v, want %q", link, err, want)
			}
		}
	}
	t.Run("takes down the link on one domain, and is idempotent", func(t *testing.T) {
		for range 2 {
			c.printsNothing(t, "link off abc --domain GO.example.com")
			wantStops(t, schema.NotStopped, schema.TakenDown)
		}
		c.printsNothing(t, "link off abc")
		wantStops(t, schema.TakenDown, schema.TakenDown)
	})
	t.Run("is undone by link on", func(t *testing.T) {
		for range 2 {
			c.printsNothing(t, "link on abc --domain SHO.rt.")
			wantStops(t, schema.NotStopped, schema.TakenDown)
		}
		c.printsNothing(t, "link on abc --domain go.example.com")
		wantStops(t, schema.NotStopped, schema.NotStopped)
	})
	t.Run("refuses an unknown link or domain", func(t *testing.T) {
		c.fails(t, "link off unknown", schema.CodeNotFound, `no link "unknown"`)
		c.fails(t, "link on abc --domain un.example.com", schema.CodeNotFound, "no account has verified")
		c.fails(t, "link off abc --domain x", schema.CodeInvalid, "hostname")
	})
}
