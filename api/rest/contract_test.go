package rest_test

import (
	"flag"
	"net/http"
	"slices"
	"strings"
	"testing"

	"linkstream/api/admin"
	"linkstream/api/rest/resttest"
	"linkstream/schema/testkit"
)

// TestContract tests an API in this process. deploy/test/e2e tests the services on engines likewise.
func TestContract(t *testing.T) {
	s := start(t)
	resttest.Test(t, resttest.System{API: s.base, Short: edgeURL,
		Admin: func(t *testing.T, args ...string) string {
			t.Helper()
			options, words, flags := admin.Config{}, args, flag.NewFlagSet("test", flag.ContinueOnError)
			options.RegisterFlags(flags)
			if first := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--") }); first >= 0 {
				testkit.Must(t, flags.Parse(args[first:]))
				words = args[:first]
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
