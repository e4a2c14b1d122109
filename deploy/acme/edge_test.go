package acme_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/postgres"
	"linkstream/schema/service"
	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

const defaultHost = "sho.example.org"

// edge is a program that serves short links.
type edge struct {
	plain, secure, ops string
	args               []string
	program            string
	process            *process
}

// newEdge returns a program that has yet to start.
func newEdge(t *testing.T, a *authority, name string, args ...string) *edge {
	t.Helper()
	e := &edge{plain: testkit.FreeAddress(t), secure: testkit.FreeAddress(t), ops: testkit.FreeAddress(t), program: program(t, name)}
	e.args = append(append(args, a.flags()...), "-edge.listen="+e.plain, "-edge.tls-listen="+e.secure, "-ops.listen="+e.ops,
		"-edge.url=https://"+defaultHost)
	return e
}

func (e *edge) start(t *testing.T) {
	t.Helper()
	e.process = start(t, e.program, nil, e.args...)
	testkit.Succeeds(t, func() error {
		resp, err := http.Get("http://" + e.ops + "/readyz")
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode != 200 {
			return errors.New(resp.Status)
		}
		return nil
	})
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
	resp, err := http.Get("http://" + e.ops + "/metrics")
	testkit.Must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	testkit.Must(t, err)
	for line := range bytes.Lines(text) {
		if value, ok := strings.CutPrefix(string(line), name+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			testkit.Must(t, err)
			return int(n)
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

const (
	metricIssued    = `linkstream_edge_acme_attempts_total{result="issued"}`
	metricFailed    = `linkstream_edge_acme_attempts_total{result="failed"}`
	metricRefused   = `linkstream_edge_acme_attempts_total{result="refused"}`
	metricTicketKey = `linkstream_edge_tls_ticket_key_timestamp_seconds`
	metricUnknown   = `linkstream_edge_tls_unknown_names_total`
)

// system is two edges on one Postgres and one broker.
type system struct {
	*authority
	dsn       string
	links     *postgres.Store
	publisher *stream.InvalidationPublisher
	owner     schema.Account
	edges     []*edge
}

// startSystem starts edges whose certificates are valid for the duration.
func startSystem(t *testing.T, valid time.Duration, args ...string) *system {
	t.Helper()
	s := &system{authority: startAuthority(t, valid), dsn: engines.Postgres(t)}
	database := postgres.DefaultConfig()
	database.DSN = s.dsn
	var err error
	s.links, err = postgres.Open(t.Context(), database)
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Close(t, s.links) })
	s.owner = schema.Account{Email: "owner@example.org", CreatedAt: time.Now()}
	testkit.Must(t, s.links.CreateAccount(t.Context(), &s.owner))
	broker := streamtest.StartBroker(t)
	client := broker.CreateTopics(1)
	var log testkit.Buffer
	s.publisher = stream.NewInvalidationPublisher(client, log.Logger())
	t.Cleanup(service.RunInBackground(context.Background(), s.publisher.Run))
	topics := broker.Config(1)
	s.host(t, defaultHost)
	for range 2 {
		args := append([]string{"-postgres.dsn=" + s.dsn, "-spool.dir=" + t.TempDir(),
			"-kafka.brokers=" + topics.Brokers}, args...)
		s.edges = append(s.edges, newEdge(t, s.authority, "edge", args...))
	}
	s.plain.to(s.edges[0].plain, s.edges[1].plain)
	s.tls.to(s.edges[0].secure, s.edges[1].secure)
	return s
}

// verify adds a verified domain with a link /abc.
func (s *system) verify(t *testing.T, host string) {
	t.Helper()
	s.host(t, host)
	domain := schema.Domain{AccountID: s.owner.ID, Host: host, CreatedAt: time.Now(), VerifiedAt: time.Now()}
	testkit.Must(t, s.links.CreateDomain(t.Context(), &domain))
	link := schema.Link{AccountID: s.owner.ID, DomainID: domain.ID, Hash: "abc", URL: "https://example.com/", Active: true, CreatedAt: time.Now()}
	testkit.Must(t, s.links.CreateLink(t.Context(), &link))
	s.publisher.Publish(schema.Change{Host: host})
}

// state waits until the store has a state of a host's certificate that is as wanted.
func state(t *testing.T, store schema.CertificateStore, host, what string, wanted func(schema.CertificateState) bool) {
	t.Helper()
	testkit.SucceedsWithin(t, 2*time.Minute, func() error {
		state, err := store.CertificateState(t.Context(), host)
		if err != nil {
			return err
		}
		if !wanted(state) {
			return fmt.Errorf("%s: not so: %+v", what, state)
		}
		return nil
	})
}

// sum adds up a metric of both edges.
func (s *system) sum(t *testing.T, name string) (n int) {
	t.Helper()
	for _, e := range s.edges {
		n += e.metric(t, name)
	}
	return n
}
