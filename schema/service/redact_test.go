package service_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"linkstream/schema/service"
	"linkstream/schema/testkit"
)

const (
	secretWord  = "pQ3_x-Zk9aLm2VbTr8Yw0sDfGhJ4cXe6uNi1oEtRv5B" // as in addresses of shared reports, sessions, cookies
	secretToken = "ls_" + secretWord
	secretHook  = "whsec_a+b/" + secretWord + "="
)

func TestRedact(t *testing.T) {
	for _, secret := range []string{secretToken, secretHook} {
		for _, form := range []string{"%s", "/%s", "/api/v1/links?token=%s", "a %s b", "(%s)", "%q", "%s.", "x=%s&y=1",
			"Authorization: Bearer %s", "authorization=bearer %s", `{"token":"%s"}`, "https://h.example/?access_token=%s"} {
			text := fmt.Sprintf(form, secret)
			if got := service.Redact(text); strings.Contains(got, secretWord[:20]) || strings.Contains(got, secretWord[20:]) {
				t.Errorf("%s becomes %s", text, got)
			}
		}
	}
	for text, want := range map[string]string{
		"Bearer abc": "Bearer …", "Basic dXNlcjpwYXNz": "Basic …", "a?reset_token=x&b=c": "a?reset_token=…&b=c",
		"password=hunter2 host=db": "password=… host=db", "Client_Secret%3Dx": "Client_Secret%3D…",
		"postgres://user:hunter2@db:5432/x": "postgres://user:…@db:5432/x", "/dashboard/shared/abc/d": "/dashboard/shared/…",
		"http://user:a@b:c@proxy:80/x": "http://user:…@proxy:80/x", "LS_abc": "LS_…",
		// These are no secrets.
		"open /mnt/shared/links.db: denied": "open /mnt/shared/links.db: denied",
		"/dashboard/links":                  "/dashboard/links", "urls_of_links": "urls_of_links",
		"https://example.com/a@b":                     "https://example.com/a@b",
		"read link \"summer-sale-of-the-whole-year\"": "read link \"summer-sale-of-the-whole-year\"",
	} {
		testkit.Equal(t, text, service.Redact(text), want)
	}
}

// TestRedactPath has paths as people misspell them, with a secret in each.
func TestRedactPath(t *testing.T) {
	escaped := ""
	for _, c := range []byte(secretWord) {
		escaped += fmt.Sprintf("%%%02x", c)
	}
	for _, secret := range []string{secretWord, secretToken, secretHook, escaped, strings.ToLower(secretWord),
		secretWord[:30], secretWord + "%0a", "%20" + secretWord} {
		for _, form := range []string{"/dashboard/shared/%s", "/dashboard/share/%s", "/dashboard//shared/%s",
			"//dashboard/shared/%s",
			"/Dashboard/Shared/%s", "/dashboard/shared%%2F%s", "/dashboard/shared/%s/", "/dashboard/shared/%s.",
			"/dashboard/shared/(%s)",
			"/dashboard/shared/%s/clicks.csv", "/shared/%s", "/%s", "%s", "/api/v1/shares/%s", "/api/v1/links/%s/report",
			"/api/v1/links%%3Ftoken=%s", "/dashboard/reset/%s", "/dashboard/sign-in&token=%s", "/api/v1/webhooks/%s;x",
			"/dashboard\\shared\\%s", "http://h.example/dashboard/shared/%s", "/dashboard/shared/%s,and",
			"/dashboard/shared:%s"} {
			path := fmt.Sprintf(form, secret)
			got := service.RedactPath(path)
			for at := 0; at+12 <= len(secret); at++ {
				if strings.Contains(got, secret[at:at+12]) {
					t.Errorf("%s becomes %s", path, got)
					break
				}
			}
		}
	}
	for _, path := range []string{"/dashboard/links/0/sale", "/api/v1/links", "/api/v1/links/bulk/edit",
		"/dashboard/webhooks"} {
		testkit.Equal(t, path, service.RedactPath(path), path)
	}
	testkit.Equal(t, "a shared report", service.RedactPath("/dashboard/shared/"+secretWord), "/dashboard/shared/…")
	testkit.Equal(t, "any word there", service.RedactPath("/dashboard/Shared%2Fabc/d"), "/dashboard/Shared%2F…")
}

func TestLogsHaveNoSecrets(t *testing.T) {
	for _, cfg := range []service.LogConfig{{Level: slog.LevelDebug}, {Level: slog.LevelDebug, JSON: true}} {
		var out bytes.Buffer
		log := cfg.Logger(&out)
		log.Debug("request "+secretToken, "path", "/api/"+secretToken, "error", errors.New("Bearer "+secretWord), "n", 7)
		log.With("of", secretHook).WithGroup("g").Info("x", slog.Group("h", "error", fmt.Errorf("%w",
			errors.New(secretToken))))
		if text := out.String(); strings.Contains(text, secretWord[:20]) || !strings.Contains(text, "…") ||
			!strings.Contains(text, "7") {
			t.Error(text)
		}
	}
}
