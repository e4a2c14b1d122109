//go:build engines

package stream_test

import (
	"flag"
	"strings"
	"testing"

	"linkstream/deploy/tools/engines/enginetest"
	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

// secureClient returns a client with topics of its own. args follow the flags that every client of s needs.
func secureClient(t *testing.T, s *testengines.Secure, args ...string) *stream.Client {
	t.Helper()
	name := enginetest.Name()
	cfg, fs := stream.DefaultConfig(), flag.NewFlagSet(t.Name(), flag.ContinueOnError)
	cfg.RegisterFlags(fs)
	args = append([]string{"-kafka.brokers", s.Addr, "-kafka.tls", "-kafka.tls-ca", s.CertFile, "-kafka.sasl", "plain",
		"-kafka.username", s.Username, "-kafka.password", s.Password, "-kafka.partitions", "2", "-kafka.group", name,
		"-kafka.clicks-topic", name + ".clicks", "-kafka.dead-topic", name + ".dead", "-kafka.changes-topic",
		name + ".changes",
	}, args...)
	testkit.Must(t, fs.Parse(args))
	testkit.Must(t, cfg.Validate())
	return streamtest.NewClient(t, cfg)
}

func TestSecureKafka(t *testing.T) {
	s, plainAddr := enginetest.SecureKafka(t)
	for name, args := range map[string][]string{
		"PLAIN":              {"-kafka.sasl", "plain"},
		"SCRAM-SHA-256":      {"-kafka.sasl", "scram-sha-256"},
		"SCRAM-SHA-512":      {"-kafka.sasl", "scram-sha-512"},
		"with a certificate": {"-kafka.tls-cert", s.CertFile, "-kafka.tls-key", s.KeyFile},
	} {
		t.Run(name+": Produce, Fetch and Consume work", func(t *testing.T) {
			client := secureClient(t, s, args...)
			testkit.Succeeds(t, func() error { return client.EnsureTopics(t.Context()) })
			testkit.Succeeds(t, func() error { return client.Produce(t.Context(), 1, batchOf("a", "b")) })
			testkit.Equal(t, "values", fetch(t, client, 1, 0, 2), []string{"a", "b"})
			group := newMembers(t)
			leave := group.join("only", client)
			group.awaitOwners(map[string]int{"only": 2})
			if err := group.commit(1, 2); err != nil {
				t.Errorf("commit: %v", err)
			}
			leave()
		})
	}
	other, _ := enginetest.Certificate(t)
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"a wrong password": {[]string{"-kafka.password", "guess"}, []string{"-kafka.password"}},
		"an unknown user": {[]string{"-kafka.sasl", "scram-sha-512", "-kafka.username", "nobody"},
			[]string{"-kafka.username"}},
		"an authority that did not sign the broker's certificate": {[]string{"-kafka.tls-ca", other},
			[]string{"-kafka.tls-ca", "unknown authority"}},
		"the system's authorities": {[]string{"-kafka.tls-ca", ""}, []string{"-kafka.tls-ca", "unknown authority"}},
		"no TLS":                   {[]string{"-kafka.tls=false", "-kafka.tls-ca", ""}, []string{"-kafka.tls"}},
		"no password":              {[]string{"-kafka.sasl", ""}, []string{"-kafka.sasl"}},
		"TLS to a port without it": {[]string{"-kafka.brokers", plainAddr}, []string{"-kafka.tls and"}},
	} {
		t.Run("the error names the flag: "+name, func(t *testing.T) {
			err := secureClient(t, s, c.args...).EnsureTopics(t.Context())
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got error %v, want one with %q", err, want)
				}
			}
		})
	}
}
