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

	"linkstream/schema"
)

// Config names the servers.
type Config struct {
	// DSN is clickhouse://user:password@host:9000,host:9000/database for the native protocol, or begins with http:// or
	// https://. Several hosts are nodes of the cluster. Options are secure=true for TLS, also with https,
	// skip_verify, tls_server_name, compress=lz4, max_open_conns, dial_timeout and connection_open_strategy. All other
	// parameters are settings of each query, such as max_threads of those of reports.
	DSN string
	// CAFile has the trusted certificate authorities in PEM. If it is "", the system's are trusted. It requires TLS.
	CAFile string
	// Cluster is the name of a cluster in the configuration of the servers, or "" for one server.
	Cluster string
}

// DefaultConfig returns the configuration of a server on this machine.
func DefaultConfig() Config { return Config{DSN: "clickhouse://127.0.0.1:9000/default"} }

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	schema.SecretVar(fs, &c.DSN, "clickhouse.dsn",
		"`URL` of ClickHouse, such as clickhouse://user:password@host:9000/database?secure=true or https://…")
	fs.StringVar(&c.CAFile, "clickhouse.tls-ca", c.CAFile,
		"PEM `file` of the certificate authorities to trust (default the system's)")
	fs.StringVar(&c.Cluster, "clickhouse.cluster", c.Cluster,
		"`name` of a ClickHouse cluster to distribute clicks over (default one server)")
}

// Validate returns an error that lists every invalid setting. It does not contain the password.
func (c *Config) Validate() error {
	var errs []error
	options, err := c.options()
	if err != nil {
		errs = append(errs, fmt.Errorf("-clickhouse.dsn: %w", err))
	} else if err := c.loadCA(options); err != nil {
		errs = append(errs, fmt.Errorf("-clickhouse.tls-ca: %w", err))
	}
	if !clusterPattern.MatchString(c.Cluster) {
		errs = append(errs, fmt.Errorf("-clickhouse.cluster: %q has characters other than letters, digits, . _ - and {}",
			c.Cluster))
	}
	return errors.Join(errs...)
}

var clusterPattern = regexp.MustCompile(`^[A-Za-z0-9._{}-]*$`) // statements contain it without escaping

const (
	maxConns    = 16 // unless the DSN says otherwise
	spareConns  = 2  // of them, for what workers do not call
	reportConns = 2  // that one report uses at the same time
	// of each in the server, unless the DSN has max_threads: more gain little beside other queries
	reportThreads = 1
	// priorities of the queries of a report: the server interrupts the latter while it executes the former
	reportPriority, yieldingPriority = 1, 2
	dialTimeout                      = 5 * time.Second  // of a connection, unless the DSN says otherwise
	readTimeout                      = 30 * time.Second // of a query
	insertTimeout                    = time.Minute      // of a batch
	killTimeout                      = 5 * time.Second  // to kill an insert that failed
)

func (c *Config) options() (*ch.Options, error) {
	options, err := ch.ParseDSN(c.DSN) // its errors do not contain the password
	if err != nil {
		return nil, err
	}
	if scheme, _, _ := strings.Cut(c.DSN, "://"); scheme != "clickhouse" && scheme != "http" && scheme != "https" {
		return nil, fmt.Errorf("%q is not clickhouse, http or https", scheme)
	}
	if len(options.Addr) > 1 && c.Cluster == "" {
		// The driver would go from one server to the next, each of which has its own positions.
		return nil, errors.New("several hosts need -clickhouse.cluster")
	}
	if options.Auth.Database == "" {
		options.Auth.Database = "default"
	}
	if options.DialTimeout == 0 {
		options.DialTimeout = dialTimeout
	}
	// The driver closes what is above the number of idle connections after each call, and connects anew for the next.
	if options.MaxOpenConns == 0 {
		options.MaxOpenConns = max(maxConns, options.MaxIdleConns)
	}
	if options.MaxIdleConns == 0 {
		options.MaxIdleConns = options.MaxOpenConns
	}
	// ClickHouse 26.2 and later collects inserts by default, so a batch would not stay one block.
	options.Settings["async_insert"] = 0
	return options, nil
}

// loadCA makes connections with these options trust the authorities of CAFile.
func (c *Config) loadCA(options *ch.Options) error {
	if c.CAFile == "" {
		return nil
	}
	if options.TLS == nil {
		return errors.New("requires secure=true in -clickhouse.dsn")
	}
	pem, err := os.ReadFile(c.CAFile)
	if err != nil {
		return err
	}
	options.TLS.RootCAs = x509.NewCertPool()
	if !options.TLS.RootCAs.AppendCertsFromPEM(pem) {
		return fmt.Errorf("%q has no certificate in PEM", c.CAFile)
	}
	return nil
}
