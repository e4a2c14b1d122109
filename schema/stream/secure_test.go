package stream_test

import (
	"flag"
	"strings"
	"testing"

	"linkstream/deploy/testengines"
	"linkstream/deploy/testengines/enginetest"
	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
)

// secureClient returns a client for topics of its own, as flags make it that follow those of all clients of s.
func secureClient(t *testing.T, s *testengines.Secure, args ...string) *stream.Client {
	t.Helper()
	name := enginetest.Name()
	cfg, fs := stream.DefaultConfig(), flag.NewFlagSet(t.Name(), flag.ContinueOnError)
	cfg.RegisterFlags(fs)
	args = append([]string{"-kafka.brokers", s.Addr, "-kafka.tls", "-kafka.tls-ca", s.CertFile, "-kafka.sasl", "plain",
		"-kafka.username", s.Username, "-kafka.password", s.Password, "-kafka.partitions", "2", "-kafka.group", name,
		"-kafka.clicks-topic", name + ".clicks", "-kafka.dead-topic", name + ".dead", "-kafka.changes-topic", name + ".changes",
	}, args...)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
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
		t.Run(name+": produces, fetches and consumes in a group", func(t *testing.T) {
			client := secureClient(t, s, args...)
			streamtest.Succeeds(t, func() error { return client.EnsureTopics(t.Context()) })
			streamtest.Succeeds(t, func() error { return client.Produce(t.Context(), 1, batchOf("a", "b")) })
			wantValues(t, fetch(t, client, 1, 0, 2), []string{"a", "b"})
			crew := newCrew(t)
			leave := crew.join("only", client)
			crew.await(map[string]int{"only": 2})
			crew.mu.Lock()
			commit := crew.commits[1]
			crew.mu.Unlock()
			if err := commit(2); err != nil {
				t.Errorf("commit: %v", err)
			}
			leave()
		})
	}
	other, _ := enginetest.Certificate(t)
	for name, c := range map[string]struct {
		args []string
		says []string
	}{
		"a wrong password": {[]string{"-kafka.password", "guess"}, []string{"-kafka.password"}},
		"an unknown user":  {[]string{"-kafka.sasl", "scram-sha-512", "-kafka.username", "nobody"}, []string{"-kafka.username"}},
		"another authority than the brokers'": {[]string{"-kafka.tls-ca", other},
			[]string{"-kafka.tls-ca", "unknown authority"}},
		"the system's authorities": {[]string{"-kafka.tls-ca", ""}, []string{"-kafka.tls-ca", "unknown authority"}},
		"no TLS":                   {[]string{"-kafka.tls=false", "-kafka.tls-ca", ""}, []string{"-kafka.tls"}},
		"no password":              {[]string{"-kafka.sasl", ""}, []string{"-kafka.sasl"}},
		"TLS where there is none":  {[]string{"-kafka.brokers", plainAddr}, []string{"-kafka.tls or"}},
	} {
		t.Run("an error says what to set: "+name, func(t *testing.T) {
			err := secureClient(t, s, c.args...).EnsureTopics(t.Context())
			for _, said := range c.says {
				if err == nil || !strings.Contains(err.Error(), said) {
					t.Errorf("error %v, want one that says %q", err, said)
				}
			}
		})
	}
}
