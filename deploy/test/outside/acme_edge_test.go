//go:build deploy

package outside_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"testing"
	"time"

	"linkstream/deploy/test/launch"
	"linkstream/schema"
	"linkstream/schema/linkstore/postgres"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

// Two edges on one Postgres get certificates from pebble, Let's Encrypt's test authority. The authority reaches the
// edges through forwarders, which hand each of its connections to another edge, so that the edge that asks for a
// certificate is not the one that answers for it. TestManual has the certificates of standalone.

const defaultHost = "sho.example.org"

// edge is a program that serves short links.
type edge struct {
	plain, secure, ops string
	args               []string
	process            *launch.Process
}

// newEdge returns an edge that has yet to start.
func newEdge(t *testing.T, a *authority, args ...string) *edge {
	t.Helper()
	e := &edge{plain: testkit.FreeAddress(t), secure: testkit.FreeAddress(t), ops: testkit.FreeAddress(t)}
	e.args = append(append(args, a.flags()...), "-edge.listen="+e.plain, "-edge.tls-listen="+e.secure, "-ops.listen="+
		e.ops,
		"-edge.url=https://"+defaultHost)
	return e
}

func (e *edge) start(t *testing.T) {
	t.Helper()
	e.process = launch.Start(t, launch.Command(launch.Program(t, "edge"), nil, e.args...))
	e.process.AwaitReady(t, "http://"+e.ops)
}

// visit follows a link by HTTPS and returns the status and the certificate of the host, which must be valid.
func (e *edge) visit(a *authority, host, path string) (status int, cert *x509.Certificate, err error) {
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: a.issuers},
		TLSHandshakeTimeout: time.Minute,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, e.secure)
		}}
	request, err := http.NewRequest("GET", "https://"+host+path, nil)
	if err != nil {
		return 0, nil, err
	}
	resp, err := transport.RoundTrip(request)
	if err != nil {
		return 0, nil, err
	}
	resp.Body.Close()
	return resp.StatusCode, resp.TLS.PeerCertificates[0], nil
}

// serves waits until a host is served with a valid certificate and returns that.
func (e *edge) serves(t *testing.T, a *authority, host string) (cert *x509.Certificate) {
	t.Helper()
	testkit.SucceedsWithin(t, 2*time.Minute, func() (err error) {
		_, cert, err = e.visit(a, host, "/")
		return err
	})
	return cert
}

// metric returns the value of a metric.
func (e *edge) metric(t *testing.T, name string) int {
	t.Helper()
	return int(launch.Metric(t, "http://"+e.ops, name))
}

const (
	metricIssued    = `linkstream_edge_acme_attempts_total{result="issued"}`
	metricTicketKey = `linkstream_edge_tls_ticket_key_timestamp_seconds`
)

// acmeSystem is two edges on one Postgres and one broker.
type acmeSystem struct {
	*authority
	links *postgres.Store
	owner schema.Account
	edges []*edge
}

// startACME returns edges that have yet to start.
func startACME(t *testing.T) *acmeSystem {
	t.Helper()
	s := &acmeSystem{authority: startAuthority(t)}
	database := postgres.DefaultConfig()
	database.DSN = engines.Postgres(t)
	var err error
	s.links, err = postgres.Open(t.Context(), database)
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Close(t, s.links) })
	s.owner = schema.Account{Email: "owner@example.org", CreatedAt: time.Now()}
	testkit.Must(t, s.links.CreateAccount(t.Context(), &s.owner))
	broker := streamtest.StartBroker(t)
	broker.CreateTopics(1)
	topics := broker.Config(1)
	s.host(t, defaultHost)
	for range 2 {
		s.edges = append(s.edges, newEdge(t, s.authority, "-postgres.dsn="+database.DSN, "-spool.dir="+t.TempDir(),
			"-kafka.brokers="+topics.Brokers))
	}
	s.reach(s.edges...)
	return s
}

// reach lets the authority reach edges.
func (s *acmeSystem) reach(edges ...*edge) {
	var plain, secure []string
	for _, e := range edges {
		plain, secure = append(plain, e.plain), append(secure, e.secure)
	}
	s.plain.to(plain...)
	s.tls.to(secure...)
}

// verify adds a verified domain with a link /abc.
func (s *acmeSystem) verify(t *testing.T, host string) {
	t.Helper()
	s.host(t, host)
	domain := schema.Domain{AccountID: s.owner.ID, Host: host, CreatedAt: time.Now(), VerifiedAt: time.Now()}
	testkit.Must(t, s.links.CreateDomain(t.Context(), &domain))
	link := schema.Link{AccountID: s.owner.ID, DomainID: domain.ID, Hash: "abc", URL: "https://example.com/", Active: true,
		CreatedAt: time.Now()}
	testkit.Must(t, s.links.CreateLink(t.Context(), &link))
}
