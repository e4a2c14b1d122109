package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"linkstream/api/auth"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

var secretField = regexp.MustCompile(`id="token" type="text" readonly value="(ls_[^"]+)"`)

// callAPI returns the status that the API answers a token with.
func (s *testService) callAPI(t *testing.T, token string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.base+"/api/v1/links", nil)
	testkit.Must(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	testkit.Must(t, err)
	defer res.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	return res.StatusCode
}

func TestTokens(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(t)
	b.get("/dashboard/tokens").want(t, http.StatusOK, "No tokens yet", "API reference with examples")
	made := b.post("/dashboard/tokens", "name", " My script ", "newest", "0")
	made.want(t, http.StatusOK, "Your new token", "My script",
		"curl -s "+s.base+"/api/v1/shorten -H 'Authorization: Bearer ls_")
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
		testkit.Must(t, err)
		if len(tokens) != 1 || tokens[0].Name != "My script" {
			t.Errorf("%+v", tokens)
		}
	})
	t.Run("is made once, though the page is reloaded", func(t *testing.T) {
		b.post("/dashboard/tokens", "name", "My script", "newest", "0").
			want(t, http.StatusUnprocessableEntity, "was already created")
		tokens, err := s.links.Tokens(t.Context(), s.account.ID)
		testkit.Must(t, err)
		if len(tokens) != 1 {
			t.Errorf("%+v", tokens)
		}
	})
	t.Run("says when it was last used", func(t *testing.T) {
		testkit.Eventually(t, "the page does not say Never", func() bool {
			return !strings.Contains(b.get("/dashboard/tokens").text(), "Never")
		})
	})
	t.Run("is refused soon after it is revoked", func(t *testing.T) {
		tokens, err := s.links.Tokens(t.Context(), s.account.ID)
		testkit.Must(t, err)
		b.post("/dashboard/tokens/revoke", "token", id(tokens[0].ID)).wantTo(t, "/dashboard/tokens")
		revoked := time.Now()
		b.follow().want(t, http.StatusOK, "The token “My script” was revoked.", "No tokens yet")
		for s.callAPI(t, token) != http.StatusUnauthorized { // the test of the cache has the exact time
			if time.Since(revoked) > testkit.Patience {
				t.Fatal("it still works")
			}
		}
	})
}

func TestTokenNames(t *testing.T) {
	s := start(t)
	b := s.signedIn(t)
	for _, c := range []struct{ name, text, problem string }{
		{"empty", "", "Enter a name"},
		{"blank", " \t ", "Enter a name"},
		{"of 65 characters", strings.Repeat("ü", 65), "at most 64 characters"},
		{"with a line break", "a\nb", "visible characters"},
		{"with text that runs backwards", "a\u202eb", "visible characters"},
		{"of no text", "a\xffb", "visible characters"},
	} {
		t.Run(c.name+" are refused", func(t *testing.T) {
			a := b.post("/dashboard/tokens", "name", c.text)
			a.want(t, http.StatusUnprocessableEntity, c.problem)
			if !strings.Contains(a.body, `aria-describedby="name-problem" aria-invalid="true"`) {
				t.Error(a.body)
			}
		})
	}
	for _, name := range []string{"x", strings.Repeat("ü", 64), "Café ☕ 日本語"} {
		b.post("/dashboard/tokens", "name", name).want(t, http.StatusOK, name, "Your new token")
	}
	t.Run("may be used twice", func(t *testing.T) {
		newest := regexp.MustCompile(`name="newest" value="(\d+)"`).FindStringSubmatch(b.get("/dashboard/tokens").body)[1]
		b.post("/dashboard/tokens", "name", "x", "newest", newest).want(t, http.StatusOK, "Your new token")
	})
}

func TestTokensAreAtMostAHundred(t *testing.T) {
	s := start(t)
	b := s.signedIn(t)
	form := csrfField.FindStringSubmatch(b.get("/dashboard/tokens").body)[1]
	for range 97 {
		_, token := auth.NewToken(s.account.ID, "one of many")
		testkit.Must(t, s.links.CreateToken(t.Context(), &token))
	}
	var making sync.WaitGroup
	for i := range 8 { // at the same time, of which three can be
		making.Go(func() {
			b.copy().send("POST", "/dashboard/tokens",
				url.Values{"csrf": {form}, "name": {fmt.Sprint("new ", i)}, "newest": {"0"}})
		})
	}
	making.Wait()
	tokens, err := s.links.Tokens(t.Context(), s.account.ID)
	testkit.Must(t, err)
	if len(tokens) > 100 {
		t.Errorf("%d tokens", len(tokens))
	}
	for n := len(tokens); n < 100; n++ {
		_, token := auth.NewToken(s.account.ID, "one of many")
		testkit.Must(t, s.links.CreateToken(t.Context(), &token))
	}
	b.post("/dashboard/tokens", "name", "one too many").want(t, http.StatusUnprocessableEntity, "You have 100 tokens")
}

func TestTokensOfOthers(t *testing.T) {
	s := start(t)
	vicky := s.addAccount(t, "vicky@example.org")
	secret, token := auth.NewToken(vicky.ID, "Vicky's")
	testkit.Must(t, s.links.CreateToken(t.Context(), &token))
	_, own := auth.NewToken(s.account.ID, "Maria's")
	testkit.Must(t, s.links.CreateToken(t.Context(), &own))
	b := s.signedIn(t)
	if strings.Contains(b.get("/dashboard/tokens").body, "Vicky") {
		t.Error("listed")
	}
	var answers []string
	for _, id := range []string{id(token.ID), "999999", "0", "x"} {
		b.post("/dashboard/tokens/revoke", "token", id).wantTo(t, "/dashboard/tokens")
		answers = append(answers, b.follow().text())
	}
	for _, text := range answers {
		if text != answers[1] {
			t.Errorf("an unknown token and another's are told apart: %q", answers)
		}
	}
	if status := s.callAPI(t, secret); status != http.StatusOK {
		t.Errorf("it was revoked: %d", status)
	}
}

func TestScopesOfTokens(t *testing.T) {
	s := start(t)
	b := s.signedIn(t)
	create := func(fields ...string) schema.Token {
		t.Helper()
		b.post("/dashboard/tokens", append([]string{"newest", "0", "scopes", "chosen"}, fields...)...).want(t, http.StatusOK,
			"Your new token")
		tokens, err := s.links.Tokens(t.Context(), s.account.ID)
		testkit.Must(t, err)
		return tokens[0]
	}
	checked := regexp.MustCompile(`value="([^"]+)" checked`).FindAllStringSubmatch(b.get("/dashboard/tokens").body, -1)
	testkit.Equal(t, "checked scopes", fmt.Sprint(checked),
		`[[value="links.read" checked links.read] [value="reports.read" checked reports.read]]`)
	token := create("name", "one", "scope", "webhooks", "scope", "links.read", "days", "30")
	testkit.Equal(t, "scopes", token.Scopes, "links.read webhooks")
	if left := time.Until(token.ExpiresAt); left < 29*24*time.Hour || left > 31*24*time.Hour {
		t.Errorf("it ends in %s", left)
	}
	b.get("/dashboard/tokens").want(t, http.StatusOK, "Read links, Manage webhooks", "expires ")
	token = create("name", "two", "scope", "webhooks", "scope", "links.read", "scope", "links.write", "scope",
		"reports.read", "days", "")
	testkit.Equal(t, "all scopes", token.Scopes, "")
	testkit.Equal(t, "ends", token.ExpiresAt.IsZero(), true)
	b.get("/dashboard/tokens").want(t, http.StatusOK, "Everything")
	b.post("/dashboard/tokens", "name", "three", "newest", "99", "scopes", "chosen").want(t,
		http.StatusUnprocessableEntity, "Choose at least one permission.")
	b.post("/dashboard/tokens", "name", "three", "newest", "99", "scopes", "chosen", "scope", "root").want(t,
		http.StatusUnprocessableEntity, "Choose at least one permission.")
}

// What a token has made ends with it. The form that revokes it says so, and can keep it.
func TestTokensEndWhatTheyMade(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(t)
	b.get("/dashboard/tokens").want(t, http.StatusOK,
		"Shared reports and webhooks that a program creates end with its token.")
	for _, keep := range []bool{false, true} {
		_, token := auth.NewToken(s.account.ID, "script")
		testkit.Must(t, s.links.CreateToken(t.Context(), &token))
		b.get("/dashboard/tokens").lacks(t, "Keep the ")
		for _, digest := range []string{"a", "b"} {
			share := schema.Share{AccountID: s.account.ID, TokenID: token.ID, CreatedAt: time.Now(),
				Digest: auth.Digest(fmt.Sprint(keep, digest))}
			testkit.Must(t, s.links.CreateShare(t.Context(), &share))
		}
		hook := schema.Webhook{AccountID: s.account.ID, TokenID: token.ID, URL: "https://hooks.example.invalid/",
			Events: []string{schema.EventLinkCreated}, Active: true, Secret: "whsec_bmV3", CreatedAt: time.Now()}
		testkit.Must(t, s.links.CreateWebhook(t.Context(), &hook))
		b.get("/dashboard/tokens").want(t, http.StatusOK,
			"Keep the 2 shared reports and 1 webhook it created")
		fields := []string{"token", id(token.ID)}
		if keep {
			fields = append(fields, "keep", "true")
		}
		b.post("/dashboard/tokens/revoke", fields...).wantTo(t, "/dashboard/tokens")
		shares, err := s.links.Shares(t.Context(), s.account.ID)
		testkit.Must(t, err)
		testkit.Equal(t, "shared reports", len(shares), map[bool]int{true: 2}[keep])
		hook, err = s.links.Webhook(t.Context(), s.account.ID, hook.ID)
		testkit.Must(t, err)
		testkit.Equal(t, "the webhook is on", hook.Active, keep)
		if !keep {
			b.get("/dashboard").want(t, http.StatusOK, "the token that set it was revoked or has expired")
		}
		testkit.Must(t, s.links.DeleteWebhook(t.Context(), s.account.ID, hook.ID))
	}
}
