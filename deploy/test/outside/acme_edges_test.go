//go:build deploy

package outside_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestTwoEdges(t *testing.T) {
	t.Parallel()
	s, all := startACME(t, 24*time.Hour), t
	for _, e := range s.edges {
		e.start(t)
	}
	t.Run("share the default domain's certificate", func(t *testing.T) {
		first, second := s.edges[0].serves(t, s.authority, defaultHost), s.edges[1].serves(t, s.authority, defaultHost)
		testkit.Equal(t, "serial number", second.SerialNumber.String(), first.SerialNumber.String())
		testkit.Equal(t, "issued", s.sum(t, metricIssued), 1)
	})
	for i, host := range []string{"go.example.org", "example.net"} { // the second one is the apex of its zone
		t.Run("share that of a verified domain, "+host, func(t *testing.T) {
			s.verify(t, host)
			first, second := s.edges[0].serves(t, s.authority, host), s.edges[1].serves(t, s.authority, host)
			testkit.Equal(t, "serial number", second.SerialNumber.String(), first.SerialNumber.String())
			testkit.Equal(t, "issued", s.sum(t, metricIssued), 2+i)
			for _, e := range s.edges {
				status, _, err := e.visit(s.authority, host, "/abc")
				testkit.Must(t, err)
				testkit.Equal(t, "status", status, 302)
			}
			state(t, s.links, host, "it is valid", func(c schema.CertificateState) bool {
				return c.Error == "" && c.ExpiresAt.Equal(first.NotAfter)
			})
		})
	}
	t.Run("resume each other's sessions, also after a restart", func(t *testing.T) {
		for _, e := range s.edges {
			testkit.Eventually(t, "an edge has the keys of tickets", func() bool { return e.metric(t, metricTicketKey) > 0 })
		}
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
		testkit.Equal(t, "the first visit", resumes(s.edges[0]), false)
		testkit.Equal(t, "at the other edge", resumes(s.edges[1]), true)
		s.edges[1].process.Kill()
		s.edges[1].start(all) // it runs on when this test ends
		testkit.Eventually(t, "the edge has the keys of tickets again",
			func() bool { return s.edges[1].metric(t, metricTicketKey) > 0 })
		testkit.Equal(t, "after a restart", resumes(s.edges[1]), true)
	})
	t.Run("redirect at once on the plain port", func(t *testing.T) {
		request, err := http.NewRequest("GET", "http://"+s.edges[0].plain+"/abc", nil)
		testkit.Must(t, err)
		request.Host = "go.example.org"
		resp, err := http.DefaultTransport.RoundTrip(request)
		testkit.Must(t, err)
		resp.Body.Close()
		testkit.Equal(t, "location", resp.Header.Get("Location"), "https://example.com/")
	})
	t.Run("unknown names cost neither the store nor the authority anything", s.refusesUnknownNames)
	t.Run("say why a domain has no certificate", func(t *testing.T) {
		s.verify(t, "nowhere.example.org")
		s.names.Remove("nowhere.example.org")
		s.edges[0].visit(s.authority, "nowhere.example.org", "/")
		state(t, s.links, "nowhere.example.org", "it has failed", func(c schema.CertificateState) bool {
			return c.ExpiresAt.IsZero() && strings.Contains(c.Error, "nowhere.example.org")
		})
	})
	t.Run("no key is in the store in plain", func(t *testing.T) {
		files, err := s.links.CertificateFiles(t.Context(), "")
		testkit.Must(t, err)
		keys := 0
		for _, file := range files {
			file, err := s.links.CertificateFile(t.Context(), file.Key)
			testkit.Must(t, err)
			if strings.HasSuffix(file.Key, ".key") {
				keys++
			}
			if strings.Contains(string(file.Value), "KEY") || strings.Contains(string(file.Value), "CERTIFICATE") {
				t.Errorf("%s is not encrypted", file.Key)
			}
		}
		if keys < 3 { // two of certificates, one of the account
			t.Errorf("%d keys in %d files", keys, len(files))
		}
	})
}

// refusesUnknownNames shakes hands with 10,000 names that nobody has verified.
func (s *acmeSystem) refusesUnknownNames(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), s.dsn)
	testkit.Must(t, err)
	defer conn.Close(t.Context())
	transactions := func() (n int) {
		testkit.Must(t, conn.QueryRow(t.Context(), `
			SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()`).Scan(&n))
		return n
	}
	const names = 10_000
	before, asked, refused := transactions(), s.door.accepted.Load(), s.sum(t, metricUnknown)
	var clients sync.WaitGroup
	for client := range 4 {
		clients.Go(func() {
			for i := range names / 4 {
				conn, err := net.Dial("tcp", s.edges[i%2].secure)
				if err != nil {
					t.Error(err)
					return
				}
				config := &tls.Config{ServerName: fmt.Sprintf("%d-%d.example.org", client, i)}
				if i%10 == 0 { // as an authority does
					config.NextProtos = []string{"acme-tls/1"}
				}
				err = tls.Client(conn, config).Handshake()
				conn.Close()
				if err == nil || !strings.Contains(err.Error(), "unrecognized name") {
					t.Errorf("%s: %v", config.ServerName, err)
					return
				}
			}
		})
	}
	clients.Wait()
	testkit.Equal(t, "refused", s.sum(t, metricUnknown)-refused, names)
	testkit.Equal(t, "connections to the authority", s.door.accepted.Load()-asked, int64(0))
	time.Sleep(1100 * time.Millisecond) // Postgres publishes its statistics once per second
	if n := transactions() - before; n > names/50 {
		t.Errorf("%d transactions for %d unknown names", n, names)
	}
}

func TestEdgeThatIsKilledWhileItGetsACertificate(t *testing.T) {
	t.Parallel()
	s := startACME(t, 24*time.Hour)
	releasePlain, releaseTLS := s.plain.hold(), s.tls.hold() // the authority waits for its answers
	s.edges[0].start(t)
	testkit.Eventually(t, "the authority validates the host",
		func() bool { return s.plain.accepted.Load()+s.tls.accepted.Load() > 0 })
	s.edges[0].process.Kill()
	s.plain.to(s.edges[1].plain) // as load balancers do
	s.tls.to(s.edges[1].secure)
	s.edges[1].start(t)
	releasePlain()
	releaseTLS()
	s.edges[1].serves(t, s.authority, defaultHost)
	s.edges[0].start(t)
	s.edges[0].serves(t, s.authority, defaultHost)
	testkit.Equal(t, "issued", s.sum(t, metricIssued), 1)
}
