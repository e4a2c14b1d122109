// Package admin has the commands by which an operator keeps accounts, tokens and domains. They need the stores alone, so
// they work beside running services, which see a change within a second.
package admin

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"linkstream/schema"
)

// Config is the options of the commands.
type Config struct {
	EdgeURL  schema.BaseURL // of short links; set by the program. Nobody can claim its host
	Verified bool           // domain add: the domain counts as verified
}

// RegisterFlags binds the options to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.BoolVar(&c.Verified, "verified", c.Verified, "with domain add: the domain counts as verified, whatever DNS says")
}

// Validate finds nothing invalid.
func (c *Config) Validate() error { return nil }

// Stores is what the commands work on.
type Stores interface {
	schema.AccountStore
	schema.TokenStore
	schema.DomainStore
}

// command is one that the operator may give: the words of name, and an argument for each word of params.
type command struct {
	name, params, help string
	run                func(*runner, context.Context, ...string) (result string, err error)
}

// runner runs commands.
type runner struct {
	stores  Stores
	options Config
}

var commands = [...]command{
	{"account add", "EMAIL", "make an account and print its password", (*runner).addAccount},
	{"account password", "EMAIL", "give the account a new password and print it; sessions end", (*runner).newPassword},
	{"account suspend", "EMAIL", "refuse the account's tokens and sessions; its links go on", (*runner).suspendAccount},
	{"account reinstate", "EMAIL", "undo account suspend", (*runner).reinstateAccount},
	{"token add", "EMAIL", "make an API token for the account and print it", (*runner).addToken},
	{"token revoke", "ID", "refuse the token for good; ID may be the token itself", (*runner).revokeToken},
	{"domain add", "EMAIL HOST", "claim the host and print the domain's id; --verified: as verified", (*runner).addDomain},
	{"domain verify", "HOST", "verify the oldest claim of the host that is not verified", (*runner).verifyDomain},
	{"migrate", "", "bring the databases up to date", (*runner).migrate},
}

// Usage lists the commands.
var Usage = func() string {
	var b strings.Builder
	b.WriteString("Commands:\n")
	for _, c := range commands {
		fmt.Fprintf(&b, "  %-26s %s\n", c.name+" "+c.params, c.help)
	}
	return b.String()
}()

// Run runs the command that args give and prints its result, if it has one, as one line. CodeInvalid if args are no
// command; else the code says why the command failed, and nothing is printed.
func Run(ctx context.Context, stores Stores, options Config, args []string, out io.Writer) error {
	c, args, err := find(args)
	if err != nil {
		return err
	}
	result, err := c.run(&runner{stores, options}, ctx, args...)
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

// find returns the command that words begin with, and the words behind its name: its arguments.
func find(words []string) (c command, args []string, err error) {
	for _, c := range commands {
		name := strings.Fields(c.name)
		if len(words) < len(name) || !slices.Equal(words[:len(name)], name) {
			continue
		}
		if args = words[len(name):]; len(args) != len(strings.Fields(c.params)) {
			return c, nil, schema.Errorf(schema.CodeInvalid, "the command is %s %s", c.name, c.params)
		}
		return c, args, nil
	}
	return c, nil, schema.Errorf(schema.CodeInvalid, "%q is no command\n\n%s", strings.Join(words, " "), Usage)
}

// migrate does nothing: a store is brought up to date when it is opened.
func (r *runner) migrate(context.Context, ...string) (string, error) { return "", nil }

// because replaces err by an explanation for the operator if it has the code.
func because(err error, code schema.Code, format string, args ...any) error {
	if schema.ErrorCode(err) == code {
		return schema.Errorf(code, format, args...)
	}
	return err
}
