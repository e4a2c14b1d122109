package service

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/peterbourgon/ff/v3"

	"linkstream/schema"
)

// Section is the settings of one part of a program: a struct with defaults that work.
type Section interface {
	// RegisterFlags binds each setting to a flag whose default is the setting's present value.
	RegisterFlags(fs *flag.FlagSet)
	// Validate returns every invalid setting, joined, by the name of its flag.
	Validate() error
}

// Parse fills sections from args and the environment and returns the arguments that are not flags. Flags may stand
// before, between and after them, but not after "--". The error names every invalid setting, not just the first;
// flag.ErrHelp after -h.
func Parse(fs *flag.FlagSet, args []string, sections ...Section) (positional []string, err error) {
	for _, s := range sections {
		s.RegisterFlags(fs)
	}
	var invalid []error
	fs.VisitAll(func(f *flag.Flag) { f.Value = &collector{f.Value, f.Name, &invalid} })

	var literal []string
	if i := slices.Index(args, "--"); i >= 0 {
		args, literal = args[:i], args[i+1:]
	}
	for {
		if err := fs.Parse(args); err != nil {
			return nil, err
		}
		if fs.NArg() == 0 {
			break
		}
		positional, args = append(positional, fs.Arg(0)), fs.Args()[1:]
	}
	// The flag set knows which flags were given: the environment is read for the others.
	if err := ff.Parse(fs, nil, ff.WithEnvVarPrefix("LINKSTREAM")); err != nil {
		return nil, err
	}
	for _, s := range sections {
		invalid = append(invalid, s.Validate())
	}
	return append(positional, literal...), errors.Join(invalid...)
}

// DefaultEdgeURL is the base of short links where an edge listens on its default address.
var DefaultEdgeURL = schema.MustParseBaseURL("http://127.0.0.1:8080")

// EdgeURLVar defines the flag -edge.url, which every program that knows short links has. Its default is *base.
func EdgeURLVar(fs *flag.FlagSet, base *schema.BaseURL) {
	fs.TextVar(base, "edge.url", *base, "public base `URL` of short links: http:// or https:// and a host")
}

// collector notes a value that cannot be parsed and lets parsing go on.
type collector struct {
	flag.Value
	name    string
	invalid *[]error
}

func (c *collector) Set(s string) error {
	if err := c.Value.Set(s); err != nil {
		env := "LINKSTREAM_" + strings.NewReplacer(".", "_", "-", "_").Replace(strings.ToUpper(c.name))
		*c.invalid = append(*c.invalid, fmt.Errorf("-%s (or %s): %q: %w", c.name, env, s, err))
	}
	return nil
}

// IsBoolFlag lets a flag of type bool stand without a value.
func (c *collector) IsBoolFlag() bool {
	b, ok := c.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// String is called by the flag package on a zero collector, too.
func (c *collector) String() string {
	if c.Value == nil {
		return ""
	}
	return c.Value.String()
}
