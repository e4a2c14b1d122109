package dashboard_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

var secretField = regexp.MustCompile(`id="token" type="text" readonly value="(ls_[^"]+)"`)

// callAPI returns the status that the API answers a token with.
func (s *service) callAPI(t *testing.T, token string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.base+"/api/v1/links", nil)
	must(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	must(t, err)
	defer res.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	return res.StatusCode
}

func TestTokens(t *testing.T) {
	s := start(t)
	b := s.signedIn(t)
	b.get("/dashboard/tokens").want(t, http.StatusOK, "No tokens yet")
	made := b.post("/dashboard/tokens", "name", " My script ", "newest", "0")
	made.want(t, http.StatusOK, "Your new token", "My script", "curl -s "+s.base+"/api/v1/shorten -H 'Authorization: Bearer ls_")
	match := secretField.FindStringSubmatch(made.body)
	if match == nil {
		t.Fatal(made.body)
	}
	token := match[1]

	t.Run("works", func(t *testing.T) {
		if status := s.callAPI(t, token); status != http.StatusOK {
			t.Error(status)
		}
	})
	t.Run("is shown once", func(t *testing.T) {
		list := b.get("/dashboard/tokens")
		list.want(t, http.StatusOK, "My script", token[:8]+"…")
		if strings.Contains(list.body, token) {
			t.Error("shown again")
		}
		tokens, err := s.links.Tokens(t.Context(), s.account.ID)
		must(t, err)
		if len(tokens) != 1 || tokens[0].Name != "My script" {
			t.Errorf("%+v", tokens)
		}
	})
	t.Run("is made once, though the page is reloaded", func(t *testing.T) {
		b.post("/dashboard/tokens", "name", "My script", "newest", "0").want(t, http.StatusUnprocessableEntity, "was sent before")
		tokens, err := s.links.Tokens(t.Context(), s.account.ID)
		must(t, err)
		if len(tokens) != 1 {
			t.Errorf("%+v", tokens)
		}
	})
	t.Run("says when it was last used", func(t *testing.T) {
		for deadline := time.Now().Add(30 * time.Second); strings.Contains(b.get("/dashboard/tokens").text(), "Never"); {
			if time.Now().After(deadline) {
				t.Fatal(b.seen.text())
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	t.Run("is refused within a second of being revoked", func(t *testing.T) {
		tokens, err := s.links.Tokens(t.Context(), s.account.ID)
		must(t, err)
		b.post("/dashboard/tokens/revoke", "token", id(tokens[0].ID)).wantTo(t, "/dashboard/tokens")
		revoked := time.Now()
		b.follow().want(t, http.StatusOK, "The token “My script” is revoked.", "No tokens yet")
		for s.callAPI(t, token) != http.StatusUnauthorized {
			if time.Since(revoked) > 1500*time.Millisecond {
				t.Fatal("it still works")
			}
		}
	})
}
