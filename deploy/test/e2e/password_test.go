package e2e_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// enter sends the form of the page that asks for a link's password, from a client's address.
func enter(t *testing.T, edge, hash, password, client string, header ...string) answer {
	t.Helper()
	form := url.Values{"password": {password}}.Encode()
	return call(t, http.MethodPost, edge+"/"+hash, form,
		append(header, "X-Forwarded-For", client, "Content-Type", "application/x-www-form-urlencoded")...)
}

// TestLinkPassword has links that ask for a password.
func TestLinkPassword(t *testing.T) {
	t.Parallel()
	s := startSystem(t, trusted, longCaches)
	_, other := s.startAnother(t, "edge")
	const (
		secret, target = "öpen & sesame+", "https://example.com/"
		asks           = `<input id="password"`
	)
	owner, clicks, whole := s.owner(), int64(0), t // programs outlive subtests
	for _, hash := range []string{"secret", "another"} {
		owner.Shorten(t, object{"long_url": target + hash, "custom_alias": hash, "password": secret, "forward_query": true,
			"card": object{"title": "A card"}}).Want(t, http.StatusCreated)
	}
	wantPage := func(t *testing.T, a answer, text string) {
		t.Helper()
		if a.Status != http.StatusOK || !strings.Contains(a.Raw, asks) || !strings.Contains(a.Raw, text) ||
			a.Header.Get("X-Robots-Tag") != "noindex" || strings.Contains(fmt.Sprint(a), target) {
			t.Error(a)
		}
	}
	t.Run("everybody is asked, in their language", func(t *testing.T) {
		for range 2 { // looked up, and from memory
			wantPage(t, s.visit(t, http.MethodGet, "/secret"), "This link asks for a password")
			wantPage(t, s.visit(t, http.MethodGet, "/secret", "Accept-Language", "pl"), "Ten link wymaga hasła")
		}
		wrong := enter(t, s.edge, "secret", "sesame", "192.0.2.1", "Accept-Language", "fr")
		wantPage(t, wrong, "Ce mot de passe est incorrect.")
	})
	grant := ""
	t.Run("the right password leads to the target, and that is the click", func(t *testing.T) {
		a := enter(t, s.edge, "secret?a=b", secret, "192.0.2.1", "User-Agent", desktop)
		testkit.Equal(t, "answer", fmt.Sprint(a.Status, a.Header.Get("Location")), "303"+target+"secret?a=b")
		clicks++
		grant, _, _ = strings.Cut(a.Header.Get("Set-Cookie"), ";")
		owner.WaitTotal(t, "secret", clicks)
	})
	follows := func(edge string, hash string) error {
		a := call(t, http.MethodGet, edge+"/"+hash, "", "Cookie", grant, "User-Agent", desktop)
		if a.Status != http.StatusFound {
			return fmt.Errorf("not redirected: %v", a)
		}
		clicks++
		return nil
	}
	t.Run("the grant works on every edge, after kill -9, and not for another link", func(t *testing.T) {
		testkit.Must(t, follows(s.edge, "secret"))
		testkit.Must(t, follows(other, "secret"))
		edge := s.all("edge")[0]
		edge.kill(whole)
		edge.start(whole)
		testkit.Must(t, follows(s.edge, "secret"))
		wantPage(t, s.visit(t, http.MethodGet, "/another", "Cookie", grant), "")
		owner.WaitTotal(t, "secret", clicks)
	})
	t.Run("an api is killed", func(t *testing.T) {
		api := s.all("api")[0]
		api.kill(whole)
		if len(s.programs) > 1 {
			testkit.Must(t, enter(t, s.edge, "secret", secret, "192.0.2.3").IsStatus(http.StatusServiceUnavailable))
			testkit.Must(t, follows(s.edge, "secret"))
		}
		api.start(whole)
		testkit.Equal(t, "status", enter(t, s.edge, "another", secret, "192.0.2.3").Status, http.StatusSeeOther)
	})
	t.Run("wrong attempts from many networks delay nobody else", func(t *testing.T) {
		const guessers = 8
		var next, wrong, redirected atomic.Int64
		var guessing sync.WaitGroup
		defer guessing.Wait()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		for range guessers {
			guessing.Go(func() {
				for n := next.Add(1); ctx.Err() == nil; n = next.Add(1) {
					a := enter(t, s.edge, "secret", fmt.Sprint("wrong", n), fmt.Sprintf("10.%d.%d.1", n>>8, n&255))
					if wrong.Add(1); a.Status == http.StatusSeeOther {
						redirected.Add(1)
					}
				}
			})
		}
		// How long a password takes depends on the machine, but not how many are judged before it: of another link,
		// at most one per turn and a few that are being answered; of the same link, those that were there before.
		for hash, most := range map[string]int64{"another": guessers, "secret": 2 * guessers} {
			least := int64(math.MaxInt64)
			for try := range 5 {
				before := wrong.Load()
				a := enter(t, other, hash, secret, fmt.Sprint("203.0.113.", try))
				testkit.Equal(t, "status", a.Status, http.StatusSeeOther)
				least = min(least, wrong.Load()-before)
			}
			if least > most {
				t.Errorf("%s: the right password waits until %d wrong ones are judged, want at most %d", hash, least, most)
			}
		}
		stop()
		guessing.Wait()
		t.Logf("%d wrong attempts", wrong.Load())
		testkit.Equal(t, "wrong attempts that were let through", redirected.Load(), int64(0))
	})
	t.Run("a changed password ends the grant within a second, none at all opens the link", func(t *testing.T) {
		change := func(password any, want int) {
			t.Helper()
			testkit.Follows(t, time.Second, func(int) func() error {
				body := fmt.Sprintf(`{"password":%s}`, password)
				edited := owner.Call(t, http.MethodPatch, "/api/v1/links/secret", body).Want(t, http.StatusOK)
				testkit.Equal(t, "has_password", edited.Body["link"].(object)["has_password"], any(password != "null"))
				return func() error {
					for _, edge := range []string{s.edge, other} {
						if a := call(t, http.MethodHead, edge+"/secret", "", "Cookie", grant); a.Status != want {
							return fmt.Errorf("status %d: %v", want, a)
						}
					}
					return nil
				}
			})
		}
		change(`"other word"`, http.StatusOK)
		a := enter(t, s.edge, "secret", "other word", "203.0.113.77")
		testkit.Equal(t, "status", a.Status, http.StatusSeeOther)
		change("null", http.StatusFound)
	})
}
