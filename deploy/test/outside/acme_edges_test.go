//go:build deploy

package outside_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"testing"

	"linkstream/schema/testkit"
)

// TestTwoEdges kills an edge while the authority validates the host of its order. The other edge takes over, and both
// serve its certificate.
func TestTwoEdges(t *testing.T) {
	t.Parallel()
	s := startACME(t)
	first, second := s.edges[0], s.edges[1]
	s.plain.hold() // the authority waits for its answers
	s.tls.hold()
	first.start(t)
	testkit.Eventually(t, "the authority validates the host",
		func() bool { return s.plain.accepted.Load()+s.tls.accepted.Load() > 0 })
	first.process.Kill()
	s.reach(second) // as load balancers do
	second.start(t)
	s.plain.release()
	s.tls.release()
	second.serves(t, s.authority, defaultHost)
	first.start(t)
	s.reach(first, second)
	s.wantShared(t, defaultHost, 1)
	for i, host := range []string{"go.example.org", "example.net"} { // the second one is the apex of its zone
		t.Run("share the certificate of a verified domain, "+host, func(t *testing.T) {
			s.verify(t, host)
			s.wantShared(t, host, 2+i)
			for _, e := range s.edges {
				status, _, err := e.visit(s.authority, host, "/abc")
				testkit.Must(t, err)
				testkit.Equal(t, "status", status, 302)
			}
		})
	}
	t.Run("resume each other's sessions", func(t *testing.T) {
		config := &tls.Config{RootCAs: s.issuers, ServerName: defaultHost,
			ClientSessionCache: tls.NewLRUClientSessionCache(1)}
		resumes := func(e *edge) bool {
			conn, err := tls.Dial("tcp", e.secure, config)
			testkit.Must(t, err)
			defer conn.Close()
			fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", defaultHost)
			_, err = io.Copy(io.Discard, conn) // the ticket comes before the answer
			testkit.Must(t, err)
			return conn.ConnectionState().DidResume
		}
		for _, e := range s.edges {
			testkit.Eventually(t, "an edge has the keys of tickets", func() bool { return e.metric(t, metricTicketKey) > 0 })
		}
		testkit.Equal(t, "the first visit", resumes(first), false)
		testkit.Equal(t, "at the other edge", resumes(second), true)
	})
}

// wantShared waits until both edges serve a host, by the same certificate. issued is how many certificates all hosts
// have. The state of the certificate is in the store.
func (s *acmeSystem) wantShared(t *testing.T, host string, issued int) {
	t.Helper()
	one, other := s.edges[0].serves(t, s.authority, host), s.edges[1].serves(t, s.authority, host)
	testkit.Equal(t, "serial number", other.SerialNumber.String(), one.SerialNumber.String())
	testkit.Equal(t, "issued", s.edges[0].metric(t, metricIssued)+s.edges[1].metric(t, metricIssued), issued)
	testkit.Succeeds(t, func() error {
		state, err := s.links.CertificateState(t.Context(), host)
		if err == nil && (state.Error != "" || !state.ExpiresAt.Equal(one.NotAfter)) {
			err = fmt.Errorf("its state is %+v", state)
		}
		return err
	})
}
