package auth_test

import (
	"testing"
	"testing/synctest"
	"time"

	"linkstream/api/auth"
	"linkstream/schema"
)

func TestKnownBrowser(t *testing.T) {
	account := schema.Account{ID: 7, PasswordHash: "hash"}
	changed, other, without := account, account, account
	changed.PasswordHash, other.ID, without.PasswordHash = "another hash", 8, ""
	synctest.Test(t, func(t *testing.T) {
		secret := auth.NewBrowser(account)
		name, ok := auth.KnownBrowser(account, secret)
		if !ok || name == "" || !auth.IsBrowser(secret) {
			t.Errorf("%q, %t", name, ok)
		}
		if again, _ := auth.KnownBrowser(account, auth.NewBrowser(account)); again == name {
			t.Error("two browsers have one name")
		}
		for what, a := range map[string]schema.Account{"another password": changed, "another account": other,
			"an account without a password": without} {
			if _, ok := auth.KnownBrowser(a, secret); ok {
				t.Errorf("known with %s", what)
			}
		}
		if _, ok := auth.KnownBrowser(without, auth.NewBrowser(without)); ok {
			t.Error("an account without a password has a browser")
		}
		for i := range secret {
			forged := []byte(secret)
			forged[i] ^= 1
			if _, ok := auth.KnownBrowser(account, string(forged)); ok {
				t.Errorf("forged at %d: known", i)
			}
		}
		for _, forged := range []string{"", "x", secret + "A", secret[1:]} {
			if _, ok := auth.KnownBrowser(account, forged); ok || auth.IsBrowser(forged) {
				t.Errorf("%q is known", forged)
			}
		}
		time.Sleep(auth.MaxBrowserAge - time.Second)
		if _, ok := auth.KnownBrowser(account, secret); !ok {
			t.Error("not known within its age")
		}
		time.Sleep(time.Second)
		if _, ok := auth.KnownBrowser(account, secret); ok {
			t.Error("known for ever")
		}
	})
}
