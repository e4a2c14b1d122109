package certificate_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/caddyserver/certmagic"

	"linkstream/edge/certificate"
	"linkstream/schema"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/testkit"
)

// authority issues certificates that are valid for 90 days, and were 80 days before the first request.
type authority struct {
	key    *ecdsa.PrivateKey
	begun  time.Time
	issued atomic.Int64
	fails  error // instead of issuing
	after  int64 // how many certificates it issues before it fails
}

func newAuthority(t *testing.T) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testkit.Must(t, err)
	return &authority{key: key, begun: time.Now().Truncate(time.Second)}
}

// expiry returns when certificate n, which begins at 1, expires.
func (a *authority) expiry(n int64) time.Time {
	return a.begun.Add(time.Duration(10+80*(n-1)) * 24 * time.Hour)
}

func (a *authority) IssuerKey() string { return "authority" }

func (a *authority) Issue(_ context.Context, request *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	if a.fails != nil && a.issued.Load() >= a.after {
		return nil, a.fails
	}
	n := a.issued.Add(1)
	template := &x509.Certificate{SerialNumber: big.NewInt(n), DNSNames: request.DNSNames,
		NotBefore: a.expiry(n).Add(-90 * 24 * time.Hour), NotAfter: a.expiry(n)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, request.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	return &certmagic.IssuedCertificate{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}

func TestExpiryFollowsRenewals(t *testing.T) {
	t.Parallel()
	source, set := openSource(t, func(cfg *certificate.Config) { cfg.ACME.RenewEvery = 50 * time.Millisecond })
	defer func() { // Run would read the renewed certificate from the store
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		source.Run(ctx)
	}()
	a := newAuthority(t)
	testkit.Must(t, source.Fetch(t.Context(), "sho.example.com", a))
	testkit.Eventually(t, "the certificate is renewed", func() bool { return a.issued.Load() == 2 })
	testkit.Eventually(t, "the metric says so", func() bool { return expiry(set) == a.expiry(2).Unix() })
}

// While a certificate cannot be renewed, it is served, and its owner reads why.
func TestOldCertificateIsServedWhileRenewalsFail(t *testing.T) {
	t.Parallel()
	store := sqlitetest.New(t)
	source, set := openSourceOn(t, store, func(cfg *certificate.Config) {
		cfg.ACME.RenewEvery = 50 * time.Millisecond
	})
	defer func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		source.Run(ctx)
	}()
	a := newAuthority(t)
	a.fails, a.after = errors.New("connection refused"), 1
	testkit.Must(t, source.Fetch(t.Context(), "sho.example.com", a))
	testkit.Eventually(t, "a renewal has failed", func() bool {
		state, err := store.CertificateState(t.Context(), "sho.example.com")
		testkit.Must(t, err)
		return state.Error == "The certificate authority does not answer." && state.ExpiresAt.Equal(a.expiry(1))
	})
	near, far := net.Pipe()
	defer near.Close()
	go func() {
		_ = tls.Server(far, source.TLSConfig()).Handshake()
		far.Close()
	}()
	conn := tls.Client(near, &tls.Config{ServerName: "sho.example.com", InsecureSkipVerify: true})
	testkit.Must(t, conn.Handshake())
	testkit.Equal(t, "expiry of the served one", conn.ConnectionState().PeerCertificates[0].NotAfter.Unix(),
		a.expiry(1).Unix())
	testkit.Equal(t, "expiry in the metrics", expiry(set), a.expiry(1).Unix())
}

func expiry(set *metrics.Set) int64 {
	const name = `linkstream_edge_tls_certificate_expiry_timestamp_seconds{source="acme"}`
	return int64(set.GetOrCreateGauge(name, nil).Get())
}

// A host that was lost stays in memory if the message about it is lost. It is not served, and its certificate is
// not renewed.
func TestExpiryIsThatOfHostsThatAreServed(t *testing.T) {
	t.Parallel()
	store := sqlitetest.New(t)
	source, set := openSourceOn(t, store)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { source.Hosts().Run(ctx) })
	defer func() { cancel(); source.Run(ctx); running.Wait() }()
	owner := schema.Account{Email: "owner@example.com", CreatedAt: time.Now()}
	testkit.Must(t, store.CreateAccount(t.Context(), &owner))
	domain := schema.Domain{AccountID: owner.ID, Host: "go.example.com", CreatedAt: time.Now(), VerifiedAt: time.Now()}
	testkit.Must(t, store.CreateDomain(t.Context(), &domain))
	known := func() bool { known, _ := source.Hosts().Known(domain.Host); return known }
	source.Hosts().Missed()
	testkit.Eventually(t, "the host is known", known)
	a := newAuthority(t)
	for _, host := range []string{domain.Host, "sho.example.com"} {
		testkit.Must(t, source.Fetch(t.Context(), host, a))
	}
	testkit.Equal(t, "expiry", expiry(set), a.expiry(1).Unix())
	testkit.Must(t, store.DeleteDomain(t.Context(), domain.ID))
	source.Hosts().Missed()
	testkit.Eventually(t, "the host is lost", func() bool { return !known() })
	testkit.Equal(t, "expiry", expiry(set), a.expiry(2).Unix())
	const lifetime = `linkstream_edge_tls_certificate_lifetime_seconds{source="acme"}`
	testkit.Equal(t, "lifetime", set.GetOrCreateGauge(lifetime, nil).Get(), 90*24*3600)
}
