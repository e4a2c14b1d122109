//go:build deploy

package outside_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"linkstream/deploy/test/launch"
	"linkstream/schema/testkit"
)

const (
	clientEmail, clientPassword = "owner@example.org", "correct horse battery"
	clientToken                 = "ls_apiclients0apiclients0apiclients0apiclients0apiclients"
)

// clientService is a running standalone program with one account.
type clientService struct{ edge, api string } // base URLs

// startClientService starts the program. It knows one unsafe host, unsafe.example.com.
func startClientService(t *testing.T) clientService {
	t.Helper()
	dir := t.TempDir()
	blocklist := filepath.Join(dir, "blocklist")
	testkit.Must(t, os.WriteFile(blocklist, []byte("0.0.0.0 unsafe.example.com\n"), 0o600))
	edge, api, ops := testkit.FreeAddress(t), testkit.FreeAddress(t), testkit.FreeAddress(t)

	p := launch.Start(t, launch.Command(launch.Program(t, "standalone"),
		[]string{"LINKSTREAM_BOOTSTRAP_EMAIL=" + clientEmail, "LINKSTREAM_BOOTSTRAP_PASSWORD=" + clientPassword,
			"LINKSTREAM_BOOTSTRAP_TOKEN=" + clientToken}, "-data", filepath.Join(dir, "data"), "-edge.listen", edge,
		"-api.listen", api, "-ops.listen", ops, "-api.blocklist", blocklist))
	p.AwaitReady(t, "http://"+ops)
	return clientService{edge: "http://" + edge, api: "http://" + api}
}

// click creates a link and follows it once, with Firefox on a desktop. It returns when the click is counted.
func (s clientService) click(t *testing.T, alias, fields string) {
	t.Helper()
	status, body := s.call(t, http.MethodPost, "/api/v1/shorten",
		`{"long_url": "https://example.com/", "custom_alias": "`+alias+`"`+fields+`}`)
	if status != http.StatusCreated {
		t.Fatalf("%d %s", status, body)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.edge+"/"+alias, nil)
	testkit.Must(t, err)
	req.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0")
	resp, err := http.DefaultTransport.RoundTrip(req)
	testkit.Must(t, err)
	resp.Body.Close()
	testkit.Eventually(t, "the click is counted", func() bool {
		_, body := s.call(t, http.MethodGet, "/api/v1/stats/"+alias, "")
		return strings.Contains(body, `"total_clicks":1`)
	})
}

func (s clientService) call(t *testing.T, method, path, body string) (status int, answer string) {
	t.Helper()
	return callAPI(t, s.api, clientToken, method, path, body)
}
