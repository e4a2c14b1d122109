package certificate_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/edge/certificate"
	"linkstream/schema"
	"linkstream/schema/linkstore"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// resumer is the part of an edge that resumes sessions.
type resumer struct {
	certificate.Tickets
	config *tls.Config
	log    *testkit.Buffer
}

// visitor is a TLS client that keeps its session.
type visitor struct{ config *tls.Config }

// fleet is edges that share a store, and what their visitors trust.
type fleet struct {
	store     schema.CertificateStore
	cert      tls.Certificate
	authority *testkit.Authority
}

func newFleet(t *testing.T, store schema.CertificateStore) *fleet {
	t.Helper()
	f := &fleet{store: store, authority: testkit.NewAuthority(t)}
	certPEM, keyPEM := f.authority.Sign(t, time.Hour, "a.example")
	var err error
	f.cert, err = tls.X509KeyPair(certPEM, keyPEM)
	testkit.Must(t, err)
	return f
}

func (f *fleet) edge(t *testing.T, secret string) *resumer {
	t.Helper()
	r := &resumer{config: &tls.Config{Certificates: []tls.Certificate{f.cert}}, log: new(testkit.Buffer)}
	var err error
	r.Tickets, err = certificate.NewTickets(f.store, secret, r.config, r.log.Logger())
	testkit.Must(t, err)
	return r
}

func (f *fleet) visitor(version uint16) *visitor {
	return &visitor{&tls.Config{RootCAs: f.authority.Roots, ServerName: "a.example", MaxVersion: version,
		ClientSessionCache: new(firstSession)}}
}

// firstSession keeps the first session: an edge gives new tickets with a new key to those who come with an old one.
type firstSession struct{ session *tls.ClientSessionState }

func (s *firstSession) Get(string) (*tls.ClientSessionState, bool) {
	return s.session, s.session != nil
}

func (s *firstSession) Put(_ string, session *tls.ClientSessionState) {
	if s.session == nil {
		s.session = session
	}
}

// visits shakes hands with an edge and reports whether that has resumed the visitor's session.
func (v *visitor) visits(t *testing.T, edge *resumer) (resumed bool) {
	t.Helper()
	near, far := net.Pipe()
	defer near.Close()
	served := make(chan error, 1)
	go func() {
		defer far.Close()
		conn := tls.Server(far, edge.config)
		_, err := conn.Write([]byte("x"))
		served <- err
	}()
	conn := tls.Client(near, v.config)
	testkit.Must(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
	if _, err := conn.Read(make([]byte, 1)); err != nil { // the ticket comes before it
		t.Fatalf("read: %v; edge: %v", err, <-served)
	}
	testkit.Must(t, <-served)
	return conn.ConnectionState().DidResume
}

var began = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

func update(t *testing.T, now time.Time, edges ...*resumer) {
	t.Helper()
	for _, edge := range edges {
		testkit.Must(t, edge.Update(t.Context(), now))
	}
}

func TestTickets(t *testing.T) {
	t.Parallel()
	f := newFleet(t, sqlitetest.New(t))
	t.Run("resume on another edge and after a restart", func(t *testing.T) {
		a, b := f.edge(t, secret), f.edge(t, secret)
		update(t, began, a, b)
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			v := f.visitor(version)
			testkit.Equal(t, "new session is resumed", v.visits(t, a), false)
			testkit.Equal(t, "resumed by the other edge", v.visits(t, b), true)
			restarted := f.edge(t, secret)
			update(t, began.Add(time.Minute), restarted)
			testkit.Equal(t, "resumed after a restart", v.visits(t, restarted), true)
		}
	})
	t.Run("are issued with a new key once all edges have it", func(t *testing.T) {
		a, b := f.edge(t, secret), f.edge(t, secret)
		second := began.Add(certificate.TicketUse)
		update(t, second.Add(-certificate.TicketLead), a, b)
		testkit.Equal(t, "in use before its time", a.Since(second.Add(-time.Second)), began)
		update(t, second, a) // b looks into the store a little later
		testkit.Equal(t, "in use", a.Since(second), second)
		v := f.visitor(0)
		v.visits(t, a)
		testkit.Equal(t, "resumed by an edge that looks later", v.visits(t, b), true)
	})
	t.Run("of a deleted key do not resume", func(t *testing.T) {
		a, v := f.edge(t, secret), f.visitor(0)
		now := began.Add(certificate.TicketUse)
		update(t, now, a)
		v.visits(t, a)
		for range 2 {
			now = now.Add(certificate.TicketUse)
			update(t, now.Add(-time.Minute), a)
			update(t, now, a)
			testkit.Equal(t, "resumed", v.visits(t, a), true)
		}
		now = now.Add(certificate.TicketUse)
		update(t, now, a)
		testkit.Equal(t, "resumed after its life", v.visits(t, a), false)
	})
	t.Run("need the same secret, whose keys nobody reads", func(t *testing.T) {
		f := newFleet(t, sqlitetest.New(t))
		a, other := f.edge(t, secret), f.edge(t, "another secret of 32 characters.")
		update(t, began, a)
		file, err := f.store.CertificateFile(t.Context(), certificate.TicketFile)
		testkit.Must(t, err)
		if bytes.Contains(file.Value, []byte("from")) {
			t.Error("the keys are not encrypted")
		}
		v := f.visitor(0)
		v.visits(t, a)
		update(t, began, other)
		testkit.Equal(t, "resumed with another secret", v.visits(t, other), false)
		testkit.Equal(t, "the log says so", other.log.Contains("-edge.acme-key"), true)
	})
}

var errAway = errors.New("the store is away")

func TestTicketsWithoutStore(t *testing.T) {
	t.Parallel()
	away := true
	f := newFleet(t, storetest.Faulty(sqlitetest.New(t), func(context.Context, string) error {
		if away {
			return errAway
		}
		return nil
	}))
	a, v := f.edge(t, secret), f.visitor(0)
	if err := a.Update(t.Context(), began); !errors.Is(err, errAway) {
		t.Errorf("the error is %v", err)
	}
	testkit.Equal(t, "in use without a key of the store", a.Since(began), time.Time{})
	testkit.Equal(t, "resumed", v.visits(t, a) || !v.visits(t, a), false) // by Go's own key
	away = false
	update(t, began, a)
	v = f.visitor(0)
	v.visits(t, a)
	away = true
	for age := time.Duration(0); age < certificate.TicketLife; age += time.Hour {
		now := began.Add(age)
		if a.Update(t.Context(), now) == nil {
			t.Fatal("the store is not away")
		}
		testkit.Equal(t, "resumed while the store is away", v.visits(t, a), true)
		if in := now.Sub(a.Since(now)); in > certificate.TicketUse+time.Hour {
			t.Errorf("a key is in use for %v", in)
		}
	}
	_ = a.Update(t.Context(), began.Add(certificate.TicketLife))
	testkit.Equal(t, "resumed after its life", v.visits(t, a), false)
	away = false
	now, b := began.Add(certificate.TicketLife+time.Hour), f.edge(t, secret)
	update(t, now, a, b)
	v = f.visitor(0)
	v.visits(t, a)
	testkit.Equal(t, "resumed by another edge once the store is back", v.visits(t, b), true)
}

// nowhere is a database without descriptors.
type nowhere struct{ linkstore.DB }

func (nowhere) Readers() int { return 1 }

func TestTicketsComplainOnce(t *testing.T) {
	// The store is always away. It has no descriptors, so that time can pass at once.
	f := newFleet(t, storetest.Faulty(linkstore.New(nowhere{}), func(context.Context, string) error { return errAway }))
	synctest.Test(t, func(t *testing.T) {
		a := f.edge(t, secret)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		a.Run(ctx)
		testkit.Equal(t, "complaints in an hour", a.log.Count("session tickets"), 1)
	})
}
