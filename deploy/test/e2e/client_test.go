package e2e_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"testing"

	"linkstream/api/rest/resttest"
)

type (
	object = resttest.Object
	answer = resttest.Answer
	caller = resttest.Caller
)

var (
	call   = resttest.Call
	decode = resttest.Decode
	number = resttest.Number
)

// curlForm is the form of the command that a first start prints.
var curlForm = regexp.MustCompile(`(?m)\bcurl .*$`)

func (s *system) owner() caller { return caller{API: s.api, Token: s.token} }

// another returns a caller with a new account, and the account's email address.
func (s *system) another(t *testing.T, name string) (caller, string) {
	t.Helper()
	email := name + "@example.com"
	s.admin(t, "account", "add", email)
	return caller{API: s.api, Token: s.admin(t, "token", "add", email)}, email
}

// domain adds a verified custom domain to an account and returns its id.
func (s *system) domain(t *testing.T, email, host string) json.Number {
	t.Helper()
	id, ok := decode(s.admin(t, "domain", "add", email, host, "--verified")).(json.Number)
	if !ok {
		t.Fatalf("domain add printed no id")
	}
	return id
}

// click follows a short link by GET and requires a redirect.
func (s *system) click(t *testing.T, hash string, header ...string) answer {
	t.Helper()
	a := s.visit(t, http.MethodGet, "/"+hash, header...)
	if err := a.IsStatus(http.StatusFound); err != nil {
		t.Fatal(err)
	}
	return a
}

// visit sends a request to the edge.
func (s *system) visit(t *testing.T, method, path string, header ...string) answer {
	t.Helper()
	return call(t, method, s.edge+path, "", header...)
}
