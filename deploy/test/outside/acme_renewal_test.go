//go:build deploy

package outside_test

import (
	"crypto/x509"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/linkstore/sqlite"
	"linkstream/schema/testkit"
)

// TestRenewal runs standalone on embedded engines, with certificates that are valid for 90 seconds.
func TestRenewal(t *testing.T) {
	t.Parallel()
	const valid = 90 * time.Second
	a := startAuthority(t, valid)
	a.host(t, defaultHost)
	data, e, first := startRenewing(t, a)
	for first.SerialNumber.BitLen()%8 == 0 {
		// one of 256: pebble 2.10 does not find its order, as DER puts a byte before this number
		data, e, first = startRenewing(t, a)
	}
	renewed := first
	testkit.SucceedsWithin(t, 2*valid, func() (err error) {
		if _, renewed, err = e.visit(a, defaultHost, "/"); err != nil {
			t.Fatalf("the certificate is not valid any more: %v", err)
		}
		if renewed.SerialNumber.Cmp(first.SerialNumber) == 0 {
			return errOld
		}
		return nil
	})
	if time.Now().After(first.NotAfter) {
		t.Errorf("renewed after %v, when it had expired", first.NotAfter)
	}
	testkit.Equal(t, "expiry in the metrics", e.metric(t, metricExpiry), int(renewed.NotAfter.Unix()))
	// While the authority is away, the old certificate is served.
	a.door.open(false)
	links, err := sqlite.Open(t.Context(), filepath.Join(data, "links.db"))
	testkit.Must(t, err)
	defer testkit.Close(t, links)
	state(t, links, defaultHost, "the renewal has failed", func(c schema.CertificateState) bool {
		return c.Error == "The certificate authority does not answer." && c.ExpiresAt.Equal(renewed.NotAfter)
	})
	_, old, err := e.visit(a, defaultHost, "/")
	testkit.Must(t, err)
	testkit.Equal(t, "serial number", old.SerialNumber.String(), renewed.SerialNumber.String())
	a.door.open(true)
	testkit.SucceedsWithin(t, 3*time.Minute, func() error {
		_, cert, err := e.visit(a, defaultHost, "/")
		if err == nil && cert.SerialNumber.Cmp(renewed.SerialNumber) == 0 {
			err = errOld
		}
		return err
	})
	state(t, links, defaultHost, "it is valid", func(c schema.CertificateState) bool { return c.Error == "" })
	// A new process has the certificate at once.
	issued := e.metric(t, metricIssued)
	if issued < 3 {
		t.Errorf("%d certificates were issued", issued)
	}
}

var errOld = errors.New("it is the old certificate")

// startRenewing starts standalone with new data and returns its first certificate.
func startRenewing(t *testing.T, a *authority) (data string, e *edge, first *x509.Certificate) {
	data = t.TempDir()
	e = newEdge(t, a, "standalone", "-data="+data, "-api.listen="+testkit.FreeAddress(t), "-edge.acme-renew-every=500ms")
	a.plain.to(e.plain)
	a.tls.to(e.secure)
	e.start(t)
	return data, e, e.serves(t, a, defaultHost)
}
