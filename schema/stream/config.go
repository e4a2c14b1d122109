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

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
)

// Config says where the brokers are, how to talk to them and what the topics are called.
type Config struct {
	Brokers  string // addresses of some brokers, separated by commas
	TLS      bool
	CAFile   string // PEM; "": the system's certificate authorities
	CertFile string // PEM, with KeyFile: the client's own certificate
	KeyFile  string
	SASL     string // "", "plain", "scram-sha-256" or "scram-sha-512"
	Username string
	Password string

	Clicks      string        // topic of click events
	Dead        string        // topic of what could not be read as a click event
	Changes     string        // topic of what caches must drop
	Group       string        // consumer group that counts
	Session     time.Duration // after which the group gives up a member that it does not hear from
	Partitions  int           // of the topic Clicks where it is created
	Replicas    int           // of topics that are created; -1: what the brokers have as default
	Compression string        // "none", "gzip", "snappy", "lz4" or "zstd"
}

// The bounds of Session. A worker is silent for moments when the machine is busy; clicks wait until a dead one is given up.
const (
	minSession = time.Second
	maxSession = 5 * time.Minute
)

// DefaultConfig returns a configuration for a broker on this machine.
func DefaultConfig() Config {
	return Config{Brokers: "127.0.0.1:9092", Clicks: "clicks", Dead: "clicks.dead", Changes: "changes",
		Group: "linkstream.ingest", Session: 10 * time.Second, Partitions: 4, Replicas: -1, Compression: "zstd"}
}

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&c.Brokers, "kafka.brokers", c.Brokers, "`addresses` of some Kafka brokers, separated by commas")
	fs.BoolVar(&c.TLS, "kafka.tls", c.TLS, "talk TLS to the brokers")
	fs.StringVar(&c.CAFile, "kafka.tls-ca", c.CAFile, "`file` of the certificate authorities to trust, in PEM (default the system's)")
	fs.StringVar(&c.CertFile, "kafka.tls-cert", c.CertFile, "`file` of the client's certificate, in PEM")
	fs.StringVar(&c.KeyFile, "kafka.tls-key", c.KeyFile, "`file` of the client's key, in PEM")
	fs.StringVar(&c.SASL, "kafka.sasl", c.SASL, "SASL `mechanism`: plain, scram-sha-256 or scram-sha-512 (default none)")
	fs.StringVar(&c.Username, "kafka.username", c.Username, "`name` for SASL")
	fs.StringVar(&c.Password, "kafka.password", c.Password, "`password` for SASL")
	fs.StringVar(&c.Clicks, "kafka.clicks-topic", c.Clicks, "`topic` of click events")
	fs.StringVar(&c.Dead, "kafka.dead-topic", c.Dead, "`topic` of what could not be read as a click event")
	fs.StringVar(&c.Changes, "kafka.changes-topic", c.Changes, "`topic` of what caches must drop")
	fs.StringVar(&c.Group, "kafka.group", c.Group, "consumer `group` that counts clicks")
	fs.DurationVar(&c.Session, "kafka.session-timeout", c.Session,
		"`time` after which the partitions of a consumer that died are given to others; brokers refuse less than 6s by default")
	fs.IntVar(&c.Partitions, "kafka.partitions", c.Partitions, "`number` of partitions of a clicks topic that has yet to be created")
	fs.IntVar(&c.Replicas, "kafka.replicas", c.Replicas, "`number` of replicas of topics that have yet to be created; -1: the brokers' default")
	fs.StringVar(&c.Compression, "kafka.compression", c.Compression, "compression of what is produced: none, gzip, snappy, lz4 or zstd")
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
		invalid("-kafka.clicks-topic, -kafka.dead-topic, -kafka.changes-topic: need three different names")
	}
	if c.Group == "" {
		invalid("-kafka.group: is empty")
	}
	if c.Session < minSession || c.Session > maxSession {
		invalid("-kafka.session-timeout: %v is not %v to %v", c.Session, minSession, maxSession)
	}
	if c.Partitions < 1 || c.Partitions > 10000 {
		invalid("-kafka.partitions: %d is not 1 to 10000", c.Partitions)
	}
	if c.Replicas != -1 && (c.Replicas < 1 || c.Replicas > 100) {
		invalid("-kafka.replicas: %d is not -1 or 1 to 100", c.Replicas)
	}
	if _, ok := codecs[c.Compression]; !ok {
		invalid("-kafka.compression: %q is not none, gzip, snappy, lz4 or zstd", c.Compression)
	}
	if _, err := c.security(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (c *Config) brokers() []string { return strings.Split(c.Brokers, ",") }

var codecs = map[string]kafka.Compression{
	"none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd,
}

// security is how a connection is protected; nil where it is not.
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
			errs = append(errs, errors.New("-kafka.tls-ca, -kafka.tls-cert, -kafka.tls-key: are of use only with -kafka.tls"))
		}
		return s, errors.Join(errs...)
	}
	s.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		s.tls.RootCAs = x509.NewCertPool()
		if pem, err := os.ReadFile(c.CAFile); err != nil {
			errs = append(errs, fmt.Errorf("-kafka.tls-ca: %w", err))
		} else if !s.tls.RootCAs.AppendCertsFromPEM(pem) {
			errs = append(errs, fmt.Errorf("-kafka.tls-ca: %q holds no certificate in PEM", c.CAFile))
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
