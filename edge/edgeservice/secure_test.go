package edgeservice_test

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"linkstream/edge/edgeservice"
	"linkstream/schema"
	"linkstream/schema/service"
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
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: authority.Roots, ServerName: "sho.rt"}, DisableKeepAlives: true},
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
	cfg.Connections.ProxyProtocol = true
	err := cfg.Validate()
	for _, want := range []string{
		"-edge.tls-listen: address nowhere", "-edge.tls-listen: there is no certificate", "-edge.tls-key: ",
		"-edge.proxy-protocol: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not in\n%v", want, err)
		}
	}
}

func TestAsk(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	domain := schema.Domain{AccountID: 1, Host: "go.example", CreatedAt: time.Now(), VerifiedAt: time.Now()}
	testkit.Must(t, e.links.CreateDomain(t.Context(), &domain))
	ops, err := service.ListenOps(service.OpsConfig{Listen: "127.0.0.1:0"}, slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	defer ops.Close()
	e.Operate(ops)
	ask := func(host string) int {
		resp, err := http.Get("http://" + ops.Addr() + "/tls/ask?domain=" + host)
		testkit.Must(t, err)
		resp.Body.Close()
		return resp.StatusCode
	}
	testkit.Equal(t, "default domain", ask("sho.rt"), 200)
	testkit.Eventually(t, "the domain is verified", func() bool { return ask(domain.Host) == 200 })
	testkit.Must(t, e.links.ReleaseDomain(t.Context(), domain.ID, time.Now()))
	testkit.Eventually(t, "it is not any more", func() bool { return ask(domain.Host) == 404 })
}
