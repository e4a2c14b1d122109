package rest_test

import (
	"net/http"
	"strings"
	"testing"

	"linkstream/api/admin"
	"linkstream/api/rest/resttest"
	"linkstream/schema/testkit"
)

// TestContract tests an API in this process. deploy/test/e2e tests the built programs likewise.
func TestContract(t *testing.T) {
	s := start(t)
	resttest.Test(t, resttest.System{API: s.base, Short: edgeURL,
		Admin: func(t *testing.T, args ...string) string {
			t.Helper()
			options, words := admin.Config{}, args
			if args[len(args)-1] == "--verified" {
				options.Verified, words = true, args[:len(args)-1]
			}
			var out strings.Builder
			testkit.Must(t, admin.Run(t.Context(), s.links, options, words, &out))
			return strings.TrimSuffix(out.String(), "\n")
		},
		Check: func(req *http.Request, a resttest.Answer) error {
			return checkAnswer(req, answer{status: a.Status, header: a.Header, raw: a.Raw})
		},
	})
}
