package schema

import "flag"

// Secret is the flag.Value of a setting that must not appear in lists of processes, in logs or in files that many can
// read: a password, a token, or an address that holds one. Programs also take its value from a file, see service.Parse.
type Secret string

// SecretVar defines a flag for the secret at p, whose default is *p.
func SecretVar(fs *flag.FlagSet, p *string, name, usage string) { fs.Var((*Secret)(p), name, usage) }

// Set sets the secret.
func (s *Secret) Set(value string) error {
	*s = Secret(value)
	return nil
}

// String returns the secret: package flag prints defaults by it.
func (s *Secret) String() string { return string(*s) }
