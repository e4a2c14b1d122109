package clickhouse

import (
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
)

// Config says where the servers are.
type Config struct {
	// DSN is clickhouse://user:password@host:9000,host:9000/database for the native protocol, or http://…:8123, or
	// https://…:8443. Options: secure=true for TLS, which https needs, too, and skip_verify, tls_server_name;
	// compress=lz4; max_open_conns, dial_timeout, connection_open_strategy. What is no option is a setting of each
	// query. Several hosts are replicas of one another, or nodes of the cluster.
	DSN string
	// CAFile is of the certificate authorities to trust, in PEM; "": the system's. It is of use only with TLS.
	CAFile string
	// Cluster is the name of a cluster in the servers' configuration; "" is one server. See the package's comment.
	Cluster string
}

// DefaultConfig returns the configuration of a server on this machine.
func DefaultConfig() Config { return Config{DSN: "clickhouse://127.0.0.1:9000/default"} }

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&c.DSN, "clickhouse.dsn", c.DSN, "`URL` of ClickHouse, as clickhouse://user:password@host:9000/database?secure=true or https://…")
	fs.StringVar(&c.CAFile, "clickhouse.tls-ca", c.CAFile,
		"`file` of the certificate authorities to trust, in PEM (default the system's)")
	fs.StringVar(&c.Cluster, "clickhouse.cluster", c.Cluster, "`name` of a ClickHouse cluster to spread clicks over (default one server)")
}

// Validate returns every invalid setting.
func (c *Config) Validate() error {
	var errs []error
	options, err := c.options()
	if err != nil {
		errs = append(errs, fmt.Errorf("-clickhouse.dsn: %w", err))
	} else if err := c.trust(options); err != nil {
		errs = append(errs, fmt.Errorf("-clickhouse.tls-ca: %w", err))
	}
	if !clusterPattern.MatchString(c.Cluster) {
		errs = append(errs, fmt.Errorf("-clickhouse.cluster: %q is not a name of letters, digits, . _ - and {macros}", c.Cluster))
	}
	return errors.Join(errs...)
}

var clusterPattern = regexp.MustCompile(`^[A-Za-z0-9._{}-]*$`) // it goes into statements as it is

const (
	dialTimeout   = 5 * time.Second  // for a connection, unless the DSN says otherwise
	readTimeout   = 30 * time.Second // for a query
	insertTimeout = time.Minute      // for a batch
	killTimeout   = 5 * time.Second  // for the end of an insert that was given up
)

func (c *Config) options() (*ch.Options, error) {
	options, err := ch.ParseDSN(c.DSN) // its errors hold no password
	if err != nil {
		return nil, err
	}
	if scheme, _, _ := strings.Cut(c.DSN, "://"); scheme != "clickhouse" && scheme != "http" && scheme != "https" {
		return nil, fmt.Errorf("%q is not clickhouse, http or https", scheme)
	}
	if options.Auth.Database == "" {
		options.Auth.Database = "default"
	}
	if options.DialTimeout == 0 {
		options.DialTimeout = dialTimeout
	}
	// ClickHouse 26.2 and later gathers inserts by default: they would not be one block each.
	options.Settings["async_insert"] = 0
	return options, nil
}

// trust has connections with these options trust the authorities of CAFile.
func (c *Config) trust(options *ch.Options) error {
	if c.CAFile == "" {
		return nil
	}
	if options.TLS == nil {
		return errors.New("is of use only with secure=true in -clickhouse.dsn")
	}
	pem, err := os.ReadFile(c.CAFile)
	if err != nil {
		return err
	}
	options.TLS.RootCAs = x509.NewCertPool()
	if !options.TLS.RootCAs.AppendCertsFromPEM(pem) {
		return fmt.Errorf("%q holds no certificate in PEM", c.CAFile)
	}
	return nil
}
