package certificate

import (
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/caddyserver/certmagic"

	"linkstream/schema"
	"linkstream/schema/service"
)

// minKeyLen is what -edge.acme-key needs, in bytes: 32 random bytes in hexadecimal or base64 have more.
const minKeyLen = 32

// Config names the certificates. The zero Config has none.
type Config struct {
	Cert string // paths of PEM files with a certificate and its chain, separated by commas
	Key  string // paths of the keys' PEM files, in the same order
	ACME ACMEConfig
}

// ACMEConfig is the authority that certificates come from.
type ACMEConfig struct {
	Email         string // of the operator, for the authority; "": certificates come from files only
	Directory     string // URL
	Roots         string // path of a PEM file with the authorities to trust for Directory; "": the system's
	Key           string // secret that encrypts keys and certificates in the link store, keys of session tickets as well
	EABID, EABKey string // external account binding (RFC 8555, section 7.3.4); "": none
	RenewEvery    time.Duration
	// HandshakeTimeout is for the rest of a handshake that has waited for a certificate; the service sets it.
	HandshakeTimeout time.Duration
}

// DefaultConfig returns a configuration that works, without certificates.
func DefaultConfig() Config {
	return Config{ACME: ACMEConfig{
		Directory:  certmagic.LetsEncryptProductionCA,
		RenewEvery: certmagic.DefaultRenewCheckInterval,
	}}
}

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&c.Cert, "edge.tls-cert", c.Cert,
		"PEM `files`, separated by commas, each with a certificate and its chain, "+
			"for -edge.tls-listen; reloaded when they change")
	fs.StringVar(&c.Key, "edge.tls-key", c.Key, "PEM `files` with the keys of -edge.tls-cert, in the same order")
	a := &c.ACME
	fs.StringVar(&a.Email, "edge.acme-email", a.Email,
		"`address` for messages of the certificate authority; it makes the edge get certificates "+
			"for the default domain and verified custom domains by ACME, under the authority's terms")
	fs.StringVar(&a.Directory, "edge.acme-directory", a.Directory, "`URL` of the authority's ACME directory")
	fs.StringVar(&a.Roots, "edge.acme-roots", a.Roots,
		"PEM `file` of the authorities to trust for -edge.acme-directory; the system's if empty")
	schema.SecretVar(fs, &a.Key, "edge.acme-key",
		"`secret` of 32 characters at least, the same on all edges, that encrypts certificates and keys in the link store; "+
			"with -edge.tls-cert, too, it makes all edges resume each other's TLS sessions")
	fs.StringVar(&a.EABID, "edge.acme-eab-id", a.EABID,
		"`identifier` of an external account, for authorities that require one")
	schema.SecretVar(fs, &a.EABKey, "edge.acme-eab-key", "`secret` of that account, in base64url")
	fs.DurationVar(&a.RenewEvery, "edge.acme-renew-every", a.RenewEvery,
		"`time` between two looks for certificates of which a third of the validity is left, which are renewed")
	service.Removed(fs, "edge.acme-max-per-hour", "certmagic bounds orders, to 10 in 10 seconds")
}

// Validate returns every invalid setting.
func (c *Config) Validate() error {
	var errs []error
	if certs, keys := len(paths(c.Cert)), len(paths(c.Key)); certs != keys {
		errs = append(errs, fmt.Errorf("-edge.tls-key: %d files for the %d of -edge.tls-cert", keys, certs))
	}
	if c.ACME.Email != "" {
		errs = append(errs, c.ACME.validate())
	}
	if c.ACME.Key != "" || c.ACME.Email != "" {
		errs = append(errs, c.ACME.checkKey())
	}
	return errors.Join(errs...)
}

func (a *ACMEConfig) validate() error {
	var errs []error
	if u, err := url.Parse(a.Directory); err != nil || u.Scheme != "https" || u.Host == "" {
		errs = append(errs, fmt.Errorf("-edge.acme-directory: %q is not an https URL", a.Directory))
	}
	if !strings.Contains(a.Email, "@") {
		errs = append(errs, fmt.Errorf("-edge.acme-email: %q is not an address", a.Email))
	}
	if (a.EABID == "") != (a.EABKey == "") {
		errs = append(errs, errors.New("-edge.acme-eab-id and -edge.acme-eab-key: only one of them is set"))
	} else if _, err := base64.RawURLEncoding.DecodeString(a.EABKey); err != nil {
		errs = append(errs, errors.New("-edge.acme-eab-key: is not base64url"))
	}
	if a.RenewEvery <= 0 {
		errs = append(errs, fmt.Errorf("-edge.acme-renew-every: %v is not above zero", a.RenewEvery))
	}
	return errors.Join(errs...)
}

func (a *ACMEConfig) checkKey() error {
	if len(a.Key) < minKeyLen {
		return fmt.Errorf("-edge.acme-key: has %d characters, fewer than %d", len(a.Key), minKeyLen)
	}
	return nil
}

// Enabled returns an error unless there are certificates to serve.
func (c *Config) Enabled() error {
	if c.Cert == "" && c.ACME.Email == "" {
		return errors.New("there is no certificate: set -edge.tls-cert and -edge.tls-key, or -edge.acme-email")
	}
	return nil
}

func paths(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}
