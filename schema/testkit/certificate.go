package testkit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates for tests.
type Authority struct {
	Roots *x509.CertPool // has its own certificate
	PEM   []byte         // the same
	cert  *x509.Certificate
	key   *ecdsa.PrivateKey
}

// NewAuthority makes an authority.
func NewAuthority(tb testing.TB) *Authority {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Must(tb, err)
	template := x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	Must(tb, err)
	cert, err := x509.ParseCertificate(der)
	Must(tb, err)
	a := &Authority{Roots: x509.NewCertPool(), PEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		cert: cert, key: key}
	a.Roots.AddCert(cert)
	return a
}

// Sign returns PEM blocks of a certificate for names, valid for the duration from now, and of its key.
func (a *Authority) Sign(tb testing.TB, valid time.Duration, names ...string) (cert, key []byte) {
	tb.Helper()
	leaf, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Must(tb, err)
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 64))
	Must(tb, err)
	template := x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: names[0]}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(valid),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, &template, a.cert, &leaf.PublicKey, a.key)
	Must(tb, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(leaf)
	Must(tb, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

// Files signs a certificate for names and writes it and its key to files in dir, whose paths it returns. Files of an
// earlier call with the same first name are replaced.
func (a *Authority) Files(tb testing.TB, dir string, names ...string) (cert, key string) {
	tb.Helper()
	certPEM, keyPEM := a.Sign(tb, time.Hour, names...)
	cert, key = filepath.Join(dir, names[0]+".crt"), filepath.Join(dir, names[0]+".key")
	Must(tb, os.WriteFile(cert, certPEM, 0o600))
	Must(tb, os.WriteFile(key, keyPEM, 0o600))
	return cert, key
}
