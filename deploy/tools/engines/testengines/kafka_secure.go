package testengines

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Secure is a listener of Kafka for clients that use TLS and authenticate by SASL: PLAIN, SCRAM-SHA-256 or
// SCRAM-SHA-512. A client may also present a certificate.
type Secure struct {
	Addr     string // host:port
	Username string
	Password string
	CertFile string // the server's self-signed certificate, which a client may present, too; PEM
	KeyFile  string // the certificate's key; PEM
}

// securePassword need not be secret, because Kafka's other listener asks for no password.
const securePassword = "not secret"

// secureProperties is the configuration of the listener.
const secureProperties = `ssl.keystore.type=PEM
ssl.keystore.location=%[1]s
ssl.truststore.type=PEM
ssl.truststore.location=%[2]s
ssl.client.auth=requested
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule \
  required user_%[3]s="%[4]s";
listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
`

// newSecure returns a listener. Its certificate is in dir; if there is none, newSecure creates it.
func newSecure(dir string, port int) (*Secure, error) {
	s := &Secure{Addr: hostPort(port), Username: user, Password: securePassword,
		CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	if exists(s.keystore()) { // it is written last
		return s, nil
	}
	cert, key, err := NewCertificate()
	if err != nil {
		return nil, fmt.Errorf("make certificate: %w", err)
	}
	for _, f := range []struct {
		path string
		pem  []byte
	}{{s.CertFile, cert}, {s.KeyFile, key}, {s.keystore(), append(key, cert...)}} {
		if err := os.WriteFile(f.path, f.pem, 0o600); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Secure) keystore() string { return filepath.Join(filepath.Dir(s.KeyFile), "keystore.pem") }

func (s *Secure) properties() string {
	return fmt.Sprintf(secureProperties, s.keystore(), s.CertFile, s.Username, s.Password)
}

// formatArgs makes the format tool add the user for SCRAM to new data. PLAIN takes it from the configuration.
func (s *Secure) formatArgs() (args []string) {
	for _, mechanism := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
		args = append(args, "--add-scram", fmt.Sprintf("%s=[name=%s,password=%s]", mechanism, s.Username, s.Password))
	}
	return args
}

// NewCertificate returns a self-signed certificate for the loopback interface and its key; PEM.
func NewCertificate() (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: user},
		IPAddresses: []net.IP{net.ParseIP(loopback)},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IsCA:        true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	cert = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), nil
}
