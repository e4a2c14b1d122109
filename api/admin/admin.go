// Package admin implements the operator's commands for accounts, tokens, domains and links, and creates the first
// account. The commands need no running service, and work while the services run; those see a change within a second.
package admin

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"linkstream/api/transfer"
	"linkstream/schema"
)

// Config holds the options of the commands.
type Config struct {
	EdgeURL  schema.BaseURL // of short links, whose host is the default domain; set by the program
	Verified bool           // domain add: store the domain as verified
	// link off, link on: the host of the link; import: see transfer.Options; "": the default domain
	Domain  string
	DryRun  bool   // import: create nothing
	Format  string // import: the format of the file; "": recognized by its columns
	Source  string // import: see transfer.Options
	Map     map[string]string
	Ignore  []string
	Scopes  []string // token add: the token's rights; none: all
	Expires string   // token add: from when on the token is refused, as RFC 3339 writes it; "": never
	Keep    bool     // token revoke: keep what the token has made
	Parts   Parts    // set by the program
}

// RegisterFlags binds the options to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.BoolVar(&c.Verified, "verified", c.Verified, "domain add: store the domain as verified, without checking DNS")
	fs.StringVar(&c.Domain, "domain", c.Domain,
		"link off, link on: the `host` of the link; import: that of links whose own host is no domain of the account "+
			"(default the default domain)")
	fs.BoolVar(&c.DryRun, "dry-run", c.DryRun, "import: say what would become of each row, and create nothing")
	fs.StringVar(&c.Format, "format", c.Format,
		"import: the `format` of the file (default the one that its columns show)")
	fs.StringVar(&c.Source, "source", c.Source,
		"import: the `service` that has counted the clicks of the file (default the one that the format is of, or import)")
	fs.Func("map", "import: a `FIELD=COLUMN` to read, such as alias=\"Back half\"; may be repeated; fields are "+
		strings.Join(transfer.MapFields(), ", "),
		func(text string) error {
			field, column, found := strings.Cut(text, "=")
			if !found || c.Map[field] != "" {
				return schema.Errorf(schema.CodeInvalid, "must be FIELD=COLUMN, each field once")
			}
			if c.Map == nil {
				c.Map = map[string]string{}
			}
			c.Map[field] = column
			return nil
		})
	fs.Func("ignore", "import: a `column` that is not read although it looks important; may be given several times",
		func(column string) error { c.Ignore = append(c.Ignore, column); return nil })
	fs.Func("scope", "token add: a `scope` of the token, "+strings.Join(schema.Scopes(), ", ")+
		"; may be given several times (default all)",
		func(scope string) error { c.Scopes = append(c.Scopes, scope); return nil })
	fs.StringVar(&c.Expires, "expires", c.Expires,
		"token add: the `time` from which on the token is refused, such as 2030-12-31T12:00:00+01:00 (default never)")
	fs.BoolVar(&c.Keep, "keep", c.Keep, "token revoke: keep the shared reports and webhooks of the token")
}

// Validate always succeeds.
func (c *Config) Validate() error { return nil }

// Stores holds what the commands read and change.
type Stores interface {
	schema.AccountStore
	schema.TokenStore
	schema.DomainStore
	schema.LinkStore
}

// command is run by the words of name, followed by one argument per word of params.
type command struct {
	name, params, help string
	run                func(*runner, context.Context, ...string) (result string, err error)
}

// runner runs commands.
type runner struct {
	stores   Stores
	options  Config
	out      io.Writer
	printErr error // the first of commands that print while they run
}

var commands = [...]command{
	{"account add", "EMAIL", "create an account and print its password", (*runner).addAccount},
	{"account password", "EMAIL", "set a new password, print it, and end all sessions", (*runner).resetPassword},
	{"account suspend", "EMAIL", "refuse the account's tokens and sessions, and stop its links", (*runner).suspendAccount},
	{"account reinstate", "EMAIL", "undo account suspend", (*runner).reinstateAccount},
	{"token add", "EMAIL", "create an API token and print it; --scope S, --expires TIME", (*runner).addToken},
	{"token revoke", "ID", "revoke a token for good, and end what it has made; ID may be the token itself; --keep",
		(*runner).revokeToken},
	{"domain add", "EMAIL HOST", "add a domain and print its id; --verified: without DNS records", (*runner).addDomain},
	{"domain verify", "HOST", "verify the oldest unverified domain of this host, without DNS records",
		(*runner).verifyDomain},
	{"domain remove", "HOST", "take a host from the account that has verified it; its links there stop",
		(*runner).removeDomain},
	{"domain transfer", "HOST EMAIL", "give a host to another account, without DNS records, and print the id",
		(*runner).transferDomain},
	{"link off", "HASH", "take a link down; --domain HOST: not on the default domain", (*runner).takeDownLink},
	{"link on", "HASH", "undo link off", (*runner).putBackLink},
	{"import", "EMAIL FILE", "create the links of a CSV file, - for standard input, and print what failed; --dry-run",
		(*runner).importLinks},
	{"export", "EMAIL", "print the links of the account with their counts as CSV", (*runner).exportLinks},
	{"migrate", "", "bring the databases up to date", (*runner).migrate},
}

// Usage lists the commands, for the program's help text.
var Usage = func() string {
	var b strings.Builder
	b.WriteString("Commands:\n")
	for _, c := range commands {
		fmt.Fprintf(&b, "  %-26s %s\n", c.name+" "+c.params, c.help)
	}
	return b.String()
}()

// Run runs the command in args and prints its result, if there is one, as one line. CodeInvalid if args are not a
// command. If the command fails, the error has the code of the failure, and nothing is printed. Only import and export
// print more, and while they run.
func Run(ctx context.Context, stores Stores, options Config, args []string, out io.Writer) error {
	c, args, err := find(args)
	if err != nil {
		return err
	}
	result, err := c.run(&runner{stores: stores, options: options, out: out}, ctx, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	if result == "" {
		return nil
	}
	if _, err := fmt.Fprintln(out, result); err != nil {
		return fmt.Errorf("print result of %s: %w", c.name, err)
	}
	return nil
}

// OnlyReads reports whether the command in args changes nothing. The schema of the stores must not change for it
// either.
func OnlyReads(options Config, args []string) bool {
	return len(args) > 0 && (args[0] == "export" || args[0] == "import" && options.DryRun)
}

// find returns the command whose name words begin with, and the words after the name as its arguments.
func find(words []string) (c command, args []string, err error) {
	for _, c := range commands {
		name := strings.Fields(c.name)
		if len(words) < len(name) || !slices.Equal(words[:len(name)], name) {
			continue
		}
		if args = words[len(name):]; len(args) != len(strings.Fields(c.params)) {
			return c, nil, schema.Errorf(schema.CodeInvalid, "usage: %s %s", c.name, c.params)
		}
		return c, args, nil
	}
	return c, nil, schema.Errorf(schema.CodeInvalid, "unknown command %q\n\n%s", strings.Join(words, " "), Usage)
}

// migrate has nothing left to do: stores migrate when they are opened.
func (r *runner) migrate(context.Context, ...string) (string, error) { return "", nil }

// explain replaces err by an explanation for the operator if it has the code.
func explain(err error, code schema.Code, format string, args ...any) error {
	if schema.ErrorCode(err) == code {
		return schema.Errorf(code, format, args...)
	}
	return err
}
