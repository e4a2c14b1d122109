package apiservice_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"linkstream/api/apiservice"
	"linkstream/api/links"
	"linkstream/schema"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/testkit"
)

func TestCommandsHaveTheRulesOfTheService(t *testing.T) {
	store := sqlitetest.New(t)
	account := schema.Account{Email: "a@example.org", CreatedAt: time.Now()}
	testkit.Must(t, store.CreateAccount(t.Context(), &account))
	hosts := filepath.Join(t.TempDir(), "hosts")
	testkit.Must(t, os.WriteFile(hosts, []byte("evil.example"), 0o600))
	cfg := apiservice.DefaultConfig()
	cfg.EdgeURL, cfg.URL = schema.MustParseBaseURL("https://sho.rt"), schema.MustParseBaseURL("https://links.example.com")
	cfg.Listen, cfg.OwnHosts, cfg.Blocklist = "api.internal:8081", "balancer.example.com", hosts
	log := slog.New(slog.DiscardHandler)
	shortener, err := apiservice.NewShortener(cfg, store, store, log)
	testkit.Must(t, err)
	for longURL, code := range map[string]schema.Code{
		"https://example.com/": "", "https://evil.example/": schema.CodeUnsafeURL, "https://sho.rt/x": schema.CodeInvalid,
		"https://links.example.com/": schema.CodeInvalid, "http://api.internal:8081/": schema.CodeInvalid,
		"https://balancer.example.com/": schema.CodeInvalid,
	} {
		_, err := shortener.Create(t.Context(), links.Request{AccountID: account.ID, LongURL: longURL})
		if schema.ErrorCode(err) != code {
			t.Errorf("%s: %v, want code %q", longURL, err, code)
		}
	}
	cfg.Listen = "127.0.0.1:0" // a free port
	_, err = apiservice.NewShortener(cfg, store, store, log)
	testkit.Must(t, err)
	for _, change := range []func(*apiservice.Config){
		func(c *apiservice.Config) { c.Blocklist = "none" }, func(c *apiservice.Config) { c.OwnHosts = "no host" },
	} {
		broken := cfg
		change(&broken)
		if _, err := apiservice.NewShortener(broken, store, store, log); err == nil {
			t.Errorf("no error of %+v", broken)
		}
	}
}
