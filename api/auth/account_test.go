package auth_test

import (
	"strings"
	"sync"
	"testing"

	"linkstream/api/auth"
	"linkstream/schema"
)

func TestBootstrap(t *testing.T) {
	const token = "ls_0123456789abcdefghijklmnopqrstuvwx-_"

	t.Run("makes up what is not given", func(t *testing.T) {
		store := newStore(t)
		c, created, err := auth.Bootstrap(t.Context(), store, "", "", "")
		if err != nil || !created || c.Email != auth.DefaultEmail {
			t.Fatalf("%+v, %t, %v", c, created, err)
		}
		wantCredentials(t, store, c)
	})
	t.Run("takes what is given", func(t *testing.T) {
		store := newStore(t)
		c, created, err := auth.Bootstrap(t.Context(), store, "Me@Example.ORG", "pass word", token)
		if want := (auth.Credentials{Email: "me@example.org", Password: "pass word", Token: token}); err != nil ||
			!created || c != want {
			t.Fatalf("%+v, %t, %v, want %+v", c, created, err, want)
		}
		wantCredentials(t, store, c)
	})
	t.Run("does nothing if there is an account", func(t *testing.T) {
		store := newStore(t)
		addToken(t, store, "other@example.org")
		c, created, err := auth.Bootstrap(t.Context(), store, "me@example.org", "", token)
		if err != nil || created || c != (auth.Credentials{}) {
			t.Fatalf("%+v, %t, %v", c, created, err)
		}
		_, err = store.AccountByEmail(t.Context(), "me@example.org")
		wantCode(t, err, schema.CodeNotFound)
		_, _, err = store.TokenByDigest(t.Context(), auth.Digest(token))
		wantCode(t, err, schema.CodeNotFound)
	})
	t.Run("makes one account when called at once", func(t *testing.T) {
		store := newStore(t)
		made := make([]bool, 8)
		var wg sync.WaitGroup
		for i := range made {
			wg.Go(func() {
				var err error
				if _, made[i], err = auth.Bootstrap(t.Context(), store, "", "", ""); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		n := 0
		for _, created := range made {
			if created {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d of %d made the first account", n, len(made))
		}
	})
	t.Run("names everything that is wrong", func(t *testing.T) {
		store := newStore(t)
		_, created, err := auth.Bootstrap(t.Context(), store, "nobody", "short", "secret")
		wantCode(t, err, schema.CodeInvalid)
		for _, what := range []string{"email", "password", "token"} {
			if !strings.Contains(err.Error(), what) {
				t.Errorf("%q does not name the %s", err, what)
			}
		}
		if strings.Contains(err.Error(), "secret") || created {
			t.Errorf("created: %t; the error shows a secret: %v", created, err)
		}
	})
	t.Run("reports a store that fails", func(t *testing.T) {
		store := newStore(t)
		store.Close()
		if _, created, err := auth.Bootstrap(t.Context(), store, "", "", ""); err == nil || created {
			t.Errorf("%t, %v", created, err)
		}
	})
}

func TestBootstrapToken(t *testing.T) {
	long := strings.Repeat("x", 253)
	for name, c := range map[string]struct {
		token string
		ok    bool
	}{
		"32 characters":               {"ls_" + long[:32], true},
		"31 characters":               {"ls_" + long[:31], false},
		"253 characters":              {"ls_" + long, true},
		"254 characters":              {"ls_x" + long, false},
		"without the mark":            {long[:43], false},
		"the mark in capitals":        {"LS_" + long[:43], false},
		"a space":                     {"ls_" + long[:32] + " x", false},
		"a character of two bytes":    {"ls_" + long[:32] + "ü", false},
		"what base64 has besides - _": {"ls_" + long[:32] + "+/", false},
	} {
		t.Run(name, func(t *testing.T) {
			store := newStore(t)
			_, created, err := auth.Bootstrap(t.Context(), store, "", "", c.token)
			if created != c.ok || (err == nil) != c.ok {
				t.Errorf("%t, %v", created, err)
			}
		})
	}
}

// wantCredentials requires that the password is the account's and the token lets in.
func wantCredentials(t *testing.T, store schema.TokenStore, c auth.Credentials) {
	t.Helper()
	token, account, err := store.TokenByDigest(t.Context(), auth.Digest(c.Token))
	if err != nil {
		t.Fatal(err)
	}
	if account.Email != c.Email || account.Suspended || account.CreatedAt.IsZero() || token.CreatedAt.IsZero() {
		t.Errorf("account %+v, token %+v", account, token)
	}
	if ok, err := auth.VerifyPassword(account.PasswordHash, c.Password); !ok || err != nil {
		t.Errorf("password %q: %t, %v", c.Password, ok, err)
	}
}

func TestParseEmail(t *testing.T) {
	domain := "@" + strings.Repeat("d", 187) + ".io"
	for given, want := range map[string]string{
		"me@example.org":                       "me@example.org",
		"Me.Too+X@Example.ORG":                 "me.too+x@example.org",
		"admin@localhost":                      "admin@localhost",
		"JÜRGEN@MÜNCHEN.example":               "jürgen@münchen.example",
		strings.Repeat("l", 63) + domain:       strings.Repeat("l", 63) + domain, // 254 bytes
		strings.Repeat("l", 64) + domain:       "",
		"":                                     "",
		"@":                                    "",
		"me":                                   "",
		"me@":                                  "",
		"@example.org":                         "",
		"me@you@example.org":                   "",
		"me@@example.org":                      "",
		" me@example.org":                      "",
		"me@example.org\n":                     "",
		"me and you@example.org":               "",
		"me\x00@example.org":                   "",
		"me\u00a0@example.org":                 "",
		"\xff@example.org":                     "",
		"Me <me@example.org>, you@example.org": "",
	} {
		t.Run(given, func(t *testing.T) {
			email, err := auth.ParseEmail(given)
			if email != want {
				t.Errorf("%q, want %q", email, want)
			}
			if want == "" {
				wantCode(t, err, schema.CodeInvalid)
			} else {
				wantCode(t, err, "")
			}
		})
	}
}
