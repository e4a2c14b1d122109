package dashboard_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"linkstream/schema"
	"linkstream/schema/storetest"
)

func TestFailures(t *testing.T) {
	var down atomic.Pointer[schema.Error]
	s := startFaulty(t, storetest.FaultOf(func(context.Context) error {
		if err := down.Load(); err != nil {
			return err
		}
		return nil
	}, "SessionByDigest", "CountAttempts"))
	b := s.signedIn(t)
	t.Run("of the link store are a page that says so", func(t *testing.T) {
		down.Store(schema.Errorf(schema.CodeUnavailable, "secret cause"))
		defer down.Store(nil)
		for _, a := range []answer{b.get("/dashboard"), b.get("/dashboard/tokens"), b.get("/dashboard/none"),
			b.signIn(email, password), b.send("POST", "/dashboard/tokens", nil)} {
			a.want(t, http.StatusServiceUnavailable, "The link store cannot be reached", "try again")
			if a.header.Get("Retry-After") == "" || strings.Contains(a.body, "secret cause") {
				t.Errorf("%v %s", a.header, a.body)
			}
		}
		if !strings.Contains(s.log.String(), "secret cause") {
			t.Errorf("not logged: %s", s.log)
		}
		s.browser(t).get("/dashboard/sign-in").want(t, http.StatusOK) // which needs no store
	})
	t.Run("of our own are a page without the cause", func(t *testing.T) {
		down.Store(schema.Errorf(schema.CodeInternal, "secret cause"))
		defer down.Store(nil)
		a := b.get("/dashboard")
		a.want(t, http.StatusInternalServerError, "Something went wrong")
		if strings.Contains(a.body, "secret cause") {
			t.Error(a.body)
		}
	})
	t.Run("are over when the store is back", func(t *testing.T) {
		b.get("/dashboard").want(t, http.StatusOK)
	})
	t.Run("log no secrets", func(t *testing.T) {
		for _, secret := range []string{password, b.session()} {
			if strings.Contains(s.log.String(), secret) {
				t.Errorf("the log has %q", secret)
			}
		}
	})
}

// TestStoreErrorsStayInside requires that the text of an error without a message for clients is on no page, for any
// code.
func TestStoreErrorsStayInside(t *testing.T) {
	var failing atomic.Pointer[schema.Error]
	s := startFaulty(t, storetest.FaultOf(func(context.Context) error {
		if err := failing.Load(); err != nil {
			return err
		}
		return nil
	}, "Links"))
	b := s.signedIn(t)
	for _, code := range []schema.Code{schema.CodeInvalid, schema.CodeUnauthorized, schema.CodeForbidden,
		schema.CodeNotFound, schema.CodeConflict, schema.CodeUnsafeURL, schema.CodeUnavailable, schema.CodeInternal} {
		failing.Store(schema.Errorf(code, "secret cause"))
		if a := b.get("/dashboard/links"); a.status < 400 || strings.Contains(a.body+fmt.Sprint(a.header), "secret") {
			t.Errorf("%s: %d %s", code, a.status, a.body)
		}
	}
	if !strings.Contains(s.log.String(), "secret cause") {
		t.Error("the log does not have the cause")
	}
}
