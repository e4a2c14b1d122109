// Package certificate gives an edge the certificates of the hosts that it serves.
package certificate

import (
	"errors"
	"flag"
	"fmt"
	"strings"
)

// Config names the certificates.
type Config struct {
	Cert string // paths of PEM files with a certificate and its chain, separated by commas
	Key  string // paths of the keys' PEM files, in the same order
}

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&c.Cert, "edge.tls-cert", c.Cert,
		"PEM `files`, separated by commas, each with a certificate and its chain, for -edge.tls-listen; reloaded when they change")
	fs.StringVar(&c.Key, "edge.tls-key", c.Key, "PEM `files` with the keys of -edge.tls-cert, in the same order")
}

// Validate returns every invalid setting.
func (c *Config) Validate() error {
	if certs, keys := len(paths(c.Cert)), len(paths(c.Key)); certs != keys {
		return fmt.Errorf("-edge.tls-key: %d files for the %d of -edge.tls-cert", keys, certs)
	}
	return nil
}

// Enabled returns an error unless there are certificates to serve.
func (c *Config) Enabled() error {
	if c.Cert == "" {
		return errors.New("there is no certificate: set -edge.tls-cert and -edge.tls-key")
	}
	return nil
}

func paths(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}
