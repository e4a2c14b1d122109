package system

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"time"

	"linkstream/bench/proc"
)

// Certificate is a certificate for HTTPS on loopback, with an ECDSA key on P-256 as authorities issue them, in PEM
// files.
type Certificate struct{ Cert, Key string }

// NewCertificate writes a new certificate to files of the group.
func NewCertificate(group *proc.Group) (Certificate, error) {
	files := Certificate{group.Path("tls.crt"), group.Path("tls.key")}
	if _, err := os.Stat(files.Key); err == nil {
		return files, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return files, err
	}
	template := x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour),
		DNSNames: []string{serverName}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		return files, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return files, err
	}
	if err := writePEM(files.Cert, "CERTIFICATE", der); err != nil {
		return files, err
	}
	return files, writePEM(files.Key, "PRIVATE KEY", secret)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

// serverName is the name in the certificate.
const serverName = "localhost"

// ClientTLS returns the settings of a load's clients: TLS 1.3, with the curve that every server supports. They do not
// check certificates, which would cost only the client.
func ClientTLS() *tls.Config {
	return &tls.Config{ServerName: serverName, MinVersion: tls.VersionTLS13, CurvePreferences: []tls.CurveID{tls.X25519},
		InsecureSkipVerify: true}
}

// Flags returns the flags of an edge that serves HTTPS on addr.
func (c Certificate) Flags(addr string) []string {
	return []string{"-edge.tls-listen", addr, "-edge.tls-cert", c.Cert, "-edge.tls-key", c.Key}
}
