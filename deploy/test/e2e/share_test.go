//go:build engines

package e2e_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// TestSharedReports reads shared reports by another api than the one that makes and revokes them.
func TestSharedReports(t *testing.T) {
	t.Parallel()
	s := startSystem(t)
	_, reader := s.startAnother(t, "api")
	owner := s.owner()
	owner.Alias(t, "shared", "https://example.com/target")
	share := func(body string) (name, path string) {
		name, address := owner.Share(t, body)
		parsed, err := url.Parse(address)
		testkit.Must(t, err)
		return name, parsed.Path
	}
	t.Run("a revoked one is not found within a second", func(t *testing.T) {
		testkit.Follows(t, time.Second, func(int) func() error {
			name, path := share(`{"hash":"shared"}`)
			wantText(t, call(t, http.MethodGet, reader+path, ""), http.StatusOK, "example.com/target")
			owner.Call(t, http.MethodDelete, name, "").Want(t, http.StatusOK)
			return func() error { return call(t, http.MethodGet, reader+path, "").IsStatus(http.StatusNotFound) }
		})
	})
	t.Run("every api accepts its password", func(t *testing.T) {
		_, path := share(`{"hash":"shared","password":"open sesame"}`)
		entered := call(t, http.MethodPost, reader+path, "password=open+sesame", "Origin", "null",
			"Content-Type", "application/x-www-form-urlencoded")
		testkit.Must(t, entered.IsStatus(http.StatusSeeOther))
		cookie, _, _ := strings.Cut(entered.Header.Get("Set-Cookie"), ";")
		for _, api := range []string{reader, s.api} {
			wantText(t, call(t, http.MethodGet, api+path, "", "Cookie", cookie), http.StatusOK, "example.com/target")
		}
	})
}
