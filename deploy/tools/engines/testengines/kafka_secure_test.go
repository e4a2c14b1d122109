package testengines_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"

	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema/testkit"
)

func testSecure(t *testing.T, s *testengines.Secure) {
	authority, err := os.ReadFile(s.CertFile)
	if err != nil {
		t.Fatal(err)
	}
	trusting := &tls.Config{RootCAs: x509.NewCertPool()}
	trusting.RootCAs.AppendCertsFromPEM(authority)
	pair, err := tls.LoadX509KeyPair(s.CertFile, s.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	presenting := trusting.Clone()
	presenting.Certificates = []tls.Certificate{pair}

	scram256, err := scram.Mechanism(scram.SHA256, s.Username, s.Password)
	if err != nil {
		t.Fatal(err)
	}
	scram512, err := scram.Mechanism(scram.SHA512, s.Username, s.Password)
	if err != nil {
		t.Fatal(err)
	}
	known := plain.Mechanism{Username: s.Username, Password: s.Password}
	for name, c := range map[string]struct {
		tls  *tls.Config
		sasl sasl.Mechanism
		ok   bool
	}{
		"PLAIN":                     {trusting, known, true},
		"SCRAM-SHA-256":             {trusting, scram256, true},
		"SCRAM-SHA-512":             {trusting, scram512, true},
		"with a certificate":        {presenting, known, true},
		"with a wrong password":     {trusting, plain.Mechanism{Username: s.Username, Password: "guess"}, false},
		"without a password":        {trusting, nil, false},
		"without TLS":               {nil, known, false},
		"from an unknown authority": {&tls.Config{}, known, false},
	} {
		t.Run(name, func(t *testing.T) {
			transport := &kafka.Transport{TLS: c.tls, SASL: c.sasl}
			defer transport.CloseIdleConnections()
			client := &kafka.Client{Addr: kafka.TCP(s.Addr), Transport: transport}
			ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
			defer cancel()
			res, err := client.Metadata(ctx, &kafka.MetadataRequest{})
			if (err == nil) != c.ok {
				t.Errorf("got %+v, %v", res, err)
			}
		})
	}
}
