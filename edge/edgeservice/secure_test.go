package edgeservice_test

import (
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"testing"

	"linkstream/edge/edgeservice"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestHTTPS(t *testing.T) {
	t.Parallel()
	authority := testkit.NewAuthority(t)
	cert, key := authority.Files(t, t.TempDir(), "sho.rt")
	e := start(t, func(cfg *edgeservice.Config) {
		cfg.TLSListen, cfg.Certificate.Cert, cfg.Certificate.Key = "127.0.0.1:0", cert, key
		cfg.Resolve.URL = schema.MustParseBaseURL("https://sho.rt")
	})
	client := http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority.Roots, ServerName: "sho.rt"}, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
	for range 3 {
		resp, err := client.Get("https://" + e.TLSAddr() + "/abc")
		testkit.Must(t, err)
		resp.Body.Close()
		testkit.Equal(t, "status", resp.StatusCode, http.StatusFound)
	}
	e.want(t, "/abc", http.StatusFound) // plain requests are redirected at once, not to HTTPS
	testkit.Must(t, e.stop())
	testkit.Equal(t, "shipped clicks", e.shipped(t), 4)
	if conn, err := net.Dial("tcp", e.TLSAddr()); err == nil {
		conn.Close()
		t.Error("the listener for HTTPS is open after the stop")
	}
}

func TestHTTPSSettings(t *testing.T) {
	cfg := edgeservice.DefaultConfig()
	cfg.Resolve.URL, cfg.TLSListen, cfg.Certificate.Key = baseURL, "nowhere", "key"
	err := cfg.Validate()
	for _, want := range []string{"-edge.tls-listen: address nowhere", "-edge.tls-listen: there is no certificate", "-edge.tls-key: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not in\n%v", want, err)
		}
	}
}
