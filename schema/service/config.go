package service

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"

	"linkstream/schema"
)

// Section holds the settings of one part of a program. It is a pointer to a struct that holds the defaults.
type Section interface {
	// RegisterFlags defines a flag for each setting. The flag's default is the current value of the setting.
	RegisterFlags(fs *flag.FlagSet)
	// Validate returns an error for each invalid setting, joined, with the name of its flag.
	Validate() error
}

// Parse sets sections from args and the environment and returns the positional arguments. Flags may precede and follow
// the positional arguments, until "--". A flag takes precedence over its environment variable: LINKSTREAM_LOG_LEVEL
// sets -log.level. An empty variable counts as not set. The error names all invalid settings, not only the first one;
// it is flag.ErrHelp for -h.
//
// A schema.Secret may also be in a file: -postgres.dsn-file (or LINKSTREAM_POSTGRES_DSN_FILE) names the file of
// -postgres.dsn.
func Parse(fs *flag.FlagSet, args []string, sections ...Section) (positional []string, err error) {
	for _, s := range sections {
		s.RegisterFlags(fs)
	}
	files := addSecretFiles(fs)
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
	inArgs := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { inArgs[f.Name] = true })
	fs.VisitAll(func(f *flag.Flag) {
		if value := os.Getenv(variable(f.Name)); value != "" && !inArgs[f.Name] {
			_ = fs.Set(f.Name, value) // collector.Set never fails
		}
	})
	fs.Visit(func(f *flag.Flag) { invalid = append(invalid, checkAddressFlag(f.Name)) })
	warnOfRemoved(fs, sections)
	for _, f := range files {
		invalid = append(invalid, f.load(fs, inArgs))
	}
	for _, s := range sections {
		invalid = append(invalid, s.Validate())
	}
	return append(positional, literal...), errors.Join(invalid...)
}

// removed is the value of a flag that a former release of this major version had: it is accepted and ignored.
type removed struct{ why string }

func (*removed) Set(string) error { return nil }
func (*removed) String() string   { return "" }

// Removed defines a flag that a former release of this major version had. If it is set, the log says why it has no
// effect.
func Removed(fs *flag.FlagSet, name, why string) { fs.Var(&removed{why}, name, "without effect: "+why) }

// warnOfRemoved makes the logger of the LogConfig warn of removed flags that are set.
func warnOfRemoved(fs *flag.FlagSet, sections []Section) {
	fs.Visit(func(f *flag.Flag) {
		gone, ok := f.Value.(*collector).Value.(*removed)
		for _, s := range sections {
			if log, is := s.(*LogConfig); is && ok {
				log.removed = append(log.removed, [2]string{f.Name, gone.why})
			}
		}
	})
}

// DefaultEdgeURL is the base of short links if the edge listens on its default address.
var DefaultEdgeURL = schema.MustParseBaseURL("http://127.0.0.1:8080")

// EdgeURLVar defines the flag -edge.url, which several programs share. Its default is *base.
func EdgeURLVar(fs *flag.FlagSet, base *schema.BaseURL) {
	fs.TextVar(base, "edge.url", *base, "public base `URL` of short links: http:// or https:// and a host")
}

// EdgeSiteVar defines the flags of the name and the colour of the default domain, which several programs share.
func EdgeSiteVar(fs *flag.FlagSet, site *schema.Site) {
	set := func(to *string, problem func(string) string) func(string) error {
		return func(text string) error {
			if problem := problem(text); problem != "" {
				return errors.New(problem)
			}
			*to = text
			return nil
		}
	}
	fs.Func("edge.site-name", "`name` of the default domain on pages that visitors see; its host if empty",
		set(&site.Name, schema.SiteNameProblem))
	fs.Func("edge.site-color",
		"`colour` of such pages, such as "+schema.DefaultColor.String()+", which it is if empty",
		set(&site.Color, schema.SiteColorProblem))
}

// collector collects the errors of a flag's values, so that parsing goes on after an error.
type collector struct {
	flag.Value
	name    string
	invalid *[]error
}

func (c *collector) Set(s string) error {
	if err := c.Value.Set(s); err != nil {
		*c.invalid = append(*c.invalid, fmt.Errorf("-%s (or %s): %q: %w", c.name, variable(c.name), s, err))
	}
	return nil
}

// IsBoolFlag makes the value of a boolean flag optional.
func (c *collector) IsBoolFlag() bool {
	b, ok := c.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// String returns the value. Package flag also calls it on a zero collector.
func (c *collector) String() string {
	if c.Value == nil {
		return ""
	}
	return c.Value.String()
}
