package stream

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"

	"linkstream/schema"
)

// Config is the configuration of a Client.
type Config struct {
	Brokers  string // bootstrap servers, host:port, separated by commas
	TLS      bool
	CAFile   string // PEM; "": the system's certificate authorities
	CertFile string // PEM, with KeyFile: the client's certificate
	KeyFile  string
	SASL     string // "", "plain", "scram-sha-256" or "scram-sha-512"
	Username string
	Password string

	Clicks     string        // topic of click events
	Dead       string        // dead letter topic: values of Clicks that do not decode
	Changes    string        // topic of cache invalidations
	Group      string        // consumer group of the ingest workers
	Session    time.Duration // session.timeout.ms: silence after which the group removes a member
	Partitions int           // of Clicks, if it is created
	Retention  time.Duration // of records in Clicks and Dead, if they are created; 0: for ever
	// replication factor of created topics; -1: 3 where there are 3 brokers, else the brokers' default
	Replicas int
}

// minRetention leaves time to notice and repair an ingest that does not count.
const minRetention = time.Hour

// Bounds of Session. A worker on a busy machine may be silent for moments, and the partitions of a dead one wait for
// the timeout.
const (
	minSession = time.Second
	maxSession = 5 * time.Minute
)

// DefaultConfig returns the configuration for a broker on this machine.
func DefaultConfig() Config {
	return Config{Brokers: "127.0.0.1:9092", Clicks: "clicks", Dead: "clicks.dead", Changes: "changes",
		Group: "linkstream.ingest", Session: 10 * time.Second, Partitions: 4, Retention: 7 * 24 * time.Hour, Replicas: -1}
}

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&c.Brokers, "kafka.brokers", c.Brokers,
		"`addresses` of the bootstrap brokers, host:port, separated by commas")
	fs.BoolVar(&c.TLS, "kafka.tls", c.TLS, "connect to the brokers with TLS")
	fs.StringVar(&c.CAFile, "kafka.tls-ca", c.CAFile,
		"PEM `file` of trusted certificate authorities (default the system's)")
	fs.StringVar(&c.CertFile, "kafka.tls-cert", c.CertFile, "PEM `file` of the client certificate")
	fs.StringVar(&c.KeyFile, "kafka.tls-key", c.KeyFile, "PEM `file` of the client certificate's key")
	fs.StringVar(&c.SASL, "kafka.sasl", c.SASL, "SASL `mechanism`: plain, scram-sha-256 or scram-sha-512 (default none)")
	fs.StringVar(&c.Username, "kafka.username", c.Username, "SASL `user name`")
	schema.SecretVar(fs, &c.Password, "kafka.password", "SASL `password`")
	fs.StringVar(&c.Clicks, "kafka.clicks-topic", c.Clicks, "`topic` of click events")
	fs.StringVar(&c.Dead, "kafka.dead-topic", c.Dead, "`topic` of records that cannot be decoded as click events")
	fs.StringVar(&c.Changes, "kafka.changes-topic", c.Changes, "`topic` of changes that caches must drop")
	fs.StringVar(&c.Group, "kafka.group", c.Group, "consumer `group` of the ingest workers")
	fs.DurationVar(&c.Session, "kafka.session-timeout", c.Session,
		"`time` of silence after which the group reassigns a consumer's partitions; brokers refuse less than 6s by default")
	fs.IntVar(&c.Partitions, "kafka.partitions", c.Partitions,
		"`number` of partitions of the clicks topic, used when it is created")
	fs.DurationVar(&c.Retention, "kafka.retention", c.Retention,
		"`time` that topics of click events keep records, used when they are created; 0: for ever")
	fs.IntVar(&c.Replicas, "kafka.replicas", c.Replicas, "replication `factor` of topics, used when they are created; "+
		"-1: 3 where there are 3 brokers, else the brokers' default")
}

// Validate returns every invalid setting.
func (c *Config) Validate() error {
	var errs []error
	invalid := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, b := range c.brokers() {
		if _, port, err := net.SplitHostPort(b); err != nil || port == "" {
			invalid("-kafka.brokers: %q is not host:port", b)
		}
	}
	topics := map[string]bool{c.Clicks: true, c.Dead: true, c.Changes: true}
	if len(topics) != 3 || topics[""] {
		invalid("-kafka.clicks-topic, -kafka.dead-topic, -kafka.changes-topic: must be three different names")
	}
	if c.Group == "" {
		invalid("-kafka.group: must not be empty")
	}
	if c.Session < minSession || c.Session > maxSession {
		invalid("-kafka.session-timeout: %v is not between %v and %v", c.Session, minSession, maxSession)
	}
	if c.Partitions < 1 || c.Partitions > 10000 {
		invalid("-kafka.partitions: %d is not between 1 and 10000", c.Partitions)
	}
	if c.Retention != 0 && c.Retention < minRetention {
		invalid("-kafka.retention: %v is not 0 or at least %v", c.Retention, minRetention)
	}
	if c.Replicas != -1 && (c.Replicas < 1 || c.Replicas > 100) {
		invalid("-kafka.replicas: %d is not -1 or between 1 and 100", c.Replicas)
	}
	if _, err := c.security(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (c *Config) brokers() []string { return strings.Split(c.Brokers, ",") }

// security holds the TLS configuration and the SASL mechanism of a connection; nil without.
type security struct {
	tls  *tls.Config
	sasl sasl.Mechanism
}

func (c *Config) security() (s security, err error) {
	var errs []error
	if s.sasl, err = c.mechanism(); err != nil {
		errs = append(errs, fmt.Errorf("-kafka.sasl: %w", err))
	}
	if !c.TLS {
		if c.CAFile != "" || c.CertFile != "" || c.KeyFile != "" {
			errs = append(errs, errors.New("-kafka.tls-ca, -kafka.tls-cert, -kafka.tls-key: need -kafka.tls"))
		}
		return s, errors.Join(errs...)
	}
	s.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		s.tls.RootCAs = x509.NewCertPool()
		if pem, err := os.ReadFile(c.CAFile); err != nil {
			errs = append(errs, fmt.Errorf("-kafka.tls-ca: %w", err))
		} else if !s.tls.RootCAs.AppendCertsFromPEM(pem) {
			errs = append(errs, fmt.Errorf("-kafka.tls-ca: no PEM certificate in %q", c.CAFile))
		}
	}
	if c.CertFile != "" || c.KeyFile != "" {
		pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			errs = append(errs, fmt.Errorf("-kafka.tls-cert, -kafka.tls-key: %w", err))
		}
		s.tls.Certificates = []tls.Certificate{pair}
	}
	return s, errors.Join(errs...)
}

func (c *Config) mechanism() (sasl.Mechanism, error) {
	switch c.SASL {
	case "":
		return nil, nil
	case "plain":
		return plain.Mechanism{Username: c.Username, Password: c.Password}, nil
	case "scram-sha-256":
		return scram.Mechanism(scram.SHA256, c.Username, c.Password)
	case "scram-sha-512":
		return scram.Mechanism(scram.SHA512, c.Username, c.Password)
	}
	return nil, fmt.Errorf("%q is not plain, scram-sha-256 or scram-sha-512", c.SASL)
}
