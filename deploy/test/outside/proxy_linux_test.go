//go:build deploy

package outside_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"linkstream/deploy/test/launch"
	"linkstream/deploy/tools/engines/testengines"
	"linkstream/edge/edgeservice"
	"linkstream/schema"
	"linkstream/schema/linkstore/sqlite"
	"linkstream/schema/service"
	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

// The tests of deploy/proxy run the proxies with these configurations in front of an edge.

// longest has the longest Location: characters that UTF-8 writes in four bytes, each of which is escaped.
var longest = "http://e.co/" + strings.Repeat("\U00020000", schema.MaxURLLen-len("http://e.co/"))

// startEdge runs an edge behind proxies on this machine. Its links are /abc and /longest on go.example.
func startEdge(t *testing.T) (addr, operators string, client *stream.Client) {
	t.Helper()
	links, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "links.db"))
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Close(t, links) })
	account := schema.Account{Email: "owner@example.com", CreatedAt: time.Now()}
	testkit.Must(t, links.CreateAccount(t.Context(), &account))
	domain := schema.Domain{AccountID: account.ID, Host: "go.example", CreatedAt: time.Now(), VerifiedAt: time.Now()}
	testkit.Must(t, links.CreateDomain(t.Context(), &domain))
	for hash, url := range map[string]string{"abc": "https://example.com/", "longest": longest} {
		link := schema.Link{AccountID: account.ID, DomainID: domain.ID, Hash: hash, URL: url, Active: true,
			CreatedAt: time.Now()}
		testkit.Must(t, links.CreateLink(t.Context(), &link))
	}
	client = streamtest.StartBroker(t).CreateTopics(1)
	cfg := edgeservice.DefaultConfig()
	cfg.Listen, cfg.Resolve.URL, cfg.Spool.Dir = "127.0.0.1:0", schema.MustParseBaseURL("https://sho.rt"), t.TempDir()
	cfg.Spool.Lanes = 1
	testkit.Must(t, cfg.Redirect.TrustedProxies.Set("127.0.0.1"))
	edge, err := edgeservice.New(cfg, links, client, slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- edge.Run(ctx) }()
	t.Cleanup(func() { cancel(); testkit.Must(t, <-ran) })
	ops, err := service.ListenOps(service.OpsConfig{Listen: "127.0.0.1:0"}, slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	t.Cleanup(ops.Close)
	edge.Operate(ops)
	return edge.Addr(), ops.Addr(), client
}

// configure writes a file of deploy/proxy to a folder, with other addresses and paths. Each text that is replaced must
// occur.
func configure(t *testing.T, name string, replace ...string) (path string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../proxy", name))
	testkit.Must(t, err)
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(string(text), replace[i]) {
			t.Fatalf("%s has no %q", name, replace[i])
		}
	}
	path = filepath.Join(t.TempDir(), name)
	testkit.Must(t, os.WriteFile(path, []byte(strings.NewReplacer(replace...).Replace(string(text))), 0o600))
	return path
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// packaged returns the path of a program of a package in a folder, or of this machine if it has the package.
func packaged(t *testing.T, dir, name string) string {
	t.Helper()
	for _, folder := range []string{"usr/sbin", "usr/bin"} {
		if path := filepath.Join(dir, folder, name); exists(path) {
			return path
		}
	}
	path, err := exec.LookPath(name)
	testkit.Must(t, err)
	return path
}

// get asks the proxy at addr.
func get(addr string, roots *x509.CertPool, scheme, path string) (*http.Response, error) {
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots},
		MaxResponseHeaderBytes: 1 << 20,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 7, 1)}}).DialContext(ctx, network, addr)
		}}
	request, err := http.NewRequest("GET", scheme+"://go.example"+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-Forwarded-For", "203.0.113.7")
	request.Header.Set("Cookie", "of=a-site-above-go.example; c="+strings.Repeat("x", 30<<10))
	resp, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return resp, err
}

// check follows links on a custom domain through a proxy, whose plain and secure addresses are given, as a client who
// claims to be another one. clicks is how many clicks the topic has afterwards.
func check(t *testing.T, roots *x509.CertPool, client *stream.Client, plain, secure string, clicks int64) {
	t.Helper()
	testkit.Succeeds(t, func() error {
		resp, err := get(secure, roots, "https", "/abc")
		if err != nil {
			return err
		}
		return testkit.Mismatch("location", resp.Header.Get("Location"), "https://example.com/")
	})
	resp, err := get(plain, roots, "http", "/Abc%2E%C2%BB&utm_source=x")
	testkit.Must(t, err)
	testkit.Equal(t, "location by HTTP", resp.Header.Get("Location"), "https://example.com/")
	resp, err = get(secure, roots, "https", "/longest")
	testkit.Must(t, err)
	testkit.Equal(t, "the longest location", len(resp.Header.Get("Location")), len("http://e.co/")+
		12*strings.Count(longest, "\U00020000"))
	wantNetworks(t, client, clicks)
}

// wantNetworks requires that clicks were counted for the client that is really there, and not for the one that it
// claims to be.
func wantNetworks(t *testing.T, client *stream.Client, clicks int64) {
	t.Helper()
	var values []string
	testkit.Succeeds(t, func() error {
		begin, end, err := client.Offsets(t.Context(), 0)
		if err != nil {
			return err
		}
		if end-begin < clicks {
			return testkit.Mismatch("clicks", end-begin, clicks)
		}
		values = nil
		_, err = client.Fetch(t.Context(), 0, begin, time.Second, func(record stream.Record) error {
			var click schema.Click
			err := schema.DecodeClick(record.Value, &click)
			values = append(values, net.IP(append(append([]byte(nil), click.Network...), 0)).String())
			return err
		})
		return err
	})
	for _, network := range values {
		testkit.Equal(t, "network of a click", network, "127.0.7.0")
	}
}

func TestProxies(t *testing.T) {
	dir, err := testengines.DebianPackages(t.Context(), slog.Default(), "nginx-light", "caddy")
	testkit.Must(t, err)
	edge, operators, client := startEdge(t)
	t.Run("nginx", func(t *testing.T) { testNginx(t, dir, edge, client) })
	t.Run("Caddy", func(t *testing.T) { testCaddy(t, dir, edge, operators, client) })
}

func testNginx(t *testing.T, dir, edge string, client *stream.Client) {
	authority, work := testkit.NewAuthority(t), t.TempDir()
	cert, key := authority.Files(t, work, "go.example")
	plain, secure := testkit.FreeAddress(t), testkit.FreeAddress(t)
	// The package's folders for temporary files are not there.
	const folders = "http { client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; " +
		"uwsgi_temp_path uwsgi; scgi_temp_path scgi;"
	config := configure(t, "nginx.conf", "http {", folders, "127.0.0.1:8080", edge, "/etc/nginx/linkstream.crt", cert,
		"/etc/nginx/linkstream.key", key, "listen 80 ", "listen "+plain+" ", "listen 443 ", "listen "+secure+" ")
	for _, folder := range []string{"body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		testkit.Must(t, os.MkdirAll(filepath.Join(work, folder), 0o700))
	}
	launch.Start(t,
		launch.Command(packaged(t, dir, "nginx"),
			[]string{"LD_LIBRARY_PATH=" + filepath.Join(dir, "usr/lib/x86_64-linux-gnu")}, "-p", work, "-e", "stderr", "-c",
			config, "-g", "daemon off; master_process off; error_log stderr; pid "+filepath.Join(work, "pid")+";"))
	check(t, authority.Roots, client, plain, secure, 3)
}

// testCaddy lets Caddy sign certificates itself, on demand as it would ask an authority for them.
func testCaddy(t *testing.T, dir, edge, operators string, client *stream.Client) {
	data, plain, secure := t.TempDir(), testkit.FreeAddress(t), testkit.FreeAddress(t)
	port := func(addr string) string {
		_, port, err := net.SplitHostPort(addr)
		testkit.Must(t, err)
		return port
	}
	own := "local_certs\n\tskip_install_trust\n\tadmin off\n\tdefault_bind 127.0.0.1\n\tstorage file_system " + data +
		"\n\thttp_port " + port(plain) + "\n\thttps_port " + port(secure) + "\n"
	config := configure(t, "Caddyfile", "email you@example.com\n", own, "127.0.0.1:8080 {", edge+" {",
		"http://127.0.0.1:9080/", "http://"+operators+"/")
	launch.Start(t, launch.Command(packaged(t, dir, "caddy"), []string{"HOME=" + data}, "run", "--adapter", "caddyfile",
		"--config", config))
	roots := x509.NewCertPool()
	testkit.Succeeds(t, func() error {
		text, err := os.ReadFile(filepath.Join(data, "pki/authorities/local/root.crt"))
		if err == nil && !roots.AppendCertsFromPEM(text) {
			err = errors.New("the root is not written yet")
		}
		return err
	})
	check(t, roots, client, plain, secure, 6)
	if _, err := tls.Dial("tcp", secure, &tls.Config{ServerName: "unknown.example", RootCAs: roots}); err == nil {
		t.Error("a name that the edge does not serve has a certificate")
	}
}
