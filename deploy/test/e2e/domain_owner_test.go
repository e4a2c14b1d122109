package e2e_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"linkstream/api/customdomain"
	"linkstream/api/customdomain/dnstest"
	"linkstream/schema/sqlite"
	"linkstream/schema/testkit"
)

// TestDomainGetsAnotherOwner sells a domain: the records of its first account go, those of a second one come.
func TestDomainGetsAnotherOwner(t *testing.T) {
	t.Parallel()
	const host = "go.example.org"
	dns := dnstest.Start(t)
	s := newSystem(t, longCaches, "LINKSTREAM_API_RESOLVER="+dns.Addr())
	s.programs[0].args = append(s.programs[0].args, "-edge.url", "http://"+shortHost)
	s.start(t)
	onHost := []string{"Host", host}
	buyer, email := s.another(t, "buyer")
	sellers, buyers := s.signIn(t), s.signInAs(t, email, s.admin(t, "account", "password", email))

	// prove adds the domain to the account of a session, sets its records, and returns its page.
	prove := func(t *testing.T, p pages) (path string, id any) {
		t.Helper()
		path = p.post(t, "/dashboard/domains", "host", host).Header.Get("Location")
		challenge := regexp.MustCompile(`linkstream-verification=\w+`).FindString(p.get(t, path).Raw)
		dns.Remove("_linkstream." + host)
		dns.Add(t, "_linkstream."+host+`. TXT "`+challenge+`"`)
		return path, decode(filepath.Base(path))
	}
	dns.Add(t, host+". CNAME "+shortHost+".")
	sold, soldID := prove(t, sellers)
	if a := sellers.post(t, sold+"/verify"); a.Status != http.StatusSeeOther {
		t.Fatal(a)
	}
	s.owner().Link(t, object{"long_url": "https://seller.example/", "custom_alias": "there", "domain_id": soldID})
	s.answers(t, "/there", http.StatusFound, "", onHost...)

	bought, boughtID := prove(t, buyers)
	wantText(t, buyers.post(t, bought+"/verify"), http.StatusConflict, "you get the domain on")
	wantText(t, sellers.get(t, "/dashboard"), http.StatusOK, "records", "missing since")
	wantText(t, sellers.get(t, sold), http.StatusOK, "Another account has proved")
	s.click(t, "there", onHost...)

	// Seven days pass, and the next check is due. A program that starts checks at once.
	s.programs[0].kill(t)
	store, err := sqlite.Open(t.Context(), filepath.Join(s.data, "links.db"))
	testkit.Must(t, err)
	defer testkit.Close(t, store)
	held, err := store.VerifiedDomain(t.Context(), host)
	testkit.Must(t, err)
	if tomorrow := time.Now().Add(24 * time.Hour); held.CheckAt.After(tomorrow) || held.CheckAt.Before(tomorrow.Add(-time.Hour)) {
		t.Errorf("the next check is at %v", held.CheckAt)
	}
	testkit.Must(t, store.ContestDomain(t.Context(), held.ID, held.ContestedBy, time.Now().Add(-customdomain.Grace)))
	testkit.Must(t, store.NoteDomainCheck(t.Context(), held.ID, held.FailingSince, time.Now()))
	s.start(t)

	t.Run("the daily check gives it to the new owner, and the edge follows", func(t *testing.T) {
		testkit.Succeeds(t, func() error {
			if now, err := store.VerifiedDomain(t.Context(), host); err != nil || now.ID == held.ID {
				return fmt.Errorf("%+v, %v", now, err)
			}
			return nil
		})
		s.answers(t, "/there", http.StatusNotFound, "", onHost...)
	})
	t.Run("the new owner has all hashes, the old one keeps the statistics", func(t *testing.T) {
		buyer.Link(t, object{"long_url": "https://buyer.example/", "custom_alias": "there", "domain_id": boughtID})
		testkit.Succeeds(t, func() error {
			if to := s.visit(t, http.MethodGet, "/there", onHost...).Header.Get("Location"); to != "https://buyer.example/" {
				return fmt.Errorf("Location is %q", to)
			}
			return nil
		})
		s.owner().WaitTotal(t, fmt.Sprintf("there?domain_id=%v", soldID), 2)
		s.owner().Shorten(t, object{"long_url": "https://seller.example/", "domain_id": soldID}).WantError(t, 422, "domain_id")
		wantText(t, sellers.get(t, sold), http.StatusOK, "was taken from your account")
	})
}
