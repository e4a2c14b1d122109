// Package cli is the command linkstream: links and reports of a service from a terminal or a script, through package
// client alone.
//
// On a terminal it prints tables, times in the local time zone and charts; to anything else, lines whose cells are
// separated by tabs, without a heading, and times as the API has them. With --json it prints the API's answers, one
// JSON value per line. Titles, URLs and referrers are the words of strangers: nothing that it prints has a control
// character or one that changes the direction of text, except for line breaks and tabs of its own.
package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"linkstream/api/client"
)

// version is set by builds, with -ldflags "-X linkstream/api/cli.version=…".
var version = "unknown"

// The exit codes of the command.
const (
	exitDone        = iota
	exitRefused     // by the service, or something else went wrong
	exitUsage       // of the command, which has sent nothing
	exitUnreachable // is the service, or it cannot answer at the moment
)

// command is one run of the command.
type command struct {
	in, out, err *os.File
	terminal     bool // whether out is one
	width        int  // of the terminal in columns

	json           bool   // print answers as they are
	url, tokenFile string // flags
	started        bool   // the command line is valid
}

// Run runs the command with arguments and returns its exit code. The end of ctx ends it.
func Run(ctx context.Context, args []string, in, out, errOut *os.File) int {
	c := &command{in: in, out: out, err: errOut}
	c.terminal, c.width = terminal(out)
	root := c.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	code := c.exitCode(err)
	fmt.Fprintf(errOut, "linkstream: %s\n", safe(err.Error()))
	if code == exitUsage {
		fmt.Fprintln(errOut, "Each command explains itself with --help.")
	}
	return code
}

// usageError is an error of the command line that arguments of flags show.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func (c *command) exitCode(err error) int {
	var refused *client.Error
	var unanswered *url.Error
	switch {
	case !c.started, errors.As(err, new(usageError)):
		return exitUsage
	case errors.As(err, &refused):
		switch refused.Status {
		case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return exitUnreachable
		}
	case errors.As(err, &unanswered) && !errors.Is(err, context.Canceled):
		return exitUnreachable
	}
	return exitRefused
}

func (c *command) root() *cobra.Command {
	root := &cobra.Command{
		Use: "linkstream", Short: "Short links and their clicks, from a terminal or a script",
		Long: `Short links and their clicks, from a terminal or a script.

The address and the API token of the service are those of "linkstream login", or of LINKSTREAM_URL and LINKSTREAM_TOKEN.
On a terminal it prints tables, in a pipe lines whose cells are separated by tabs, without a heading.

It exits with 0 after success, 1 when the service refuses or something else fails, 2 when the command line is wrong, and
3 when the service cannot be reached.`,
		Version:       fmt.Sprintf("%s %s %s/%s", version, runtime.Version(), runtime.GOOS, runtime.GOARCH),
		SilenceErrors: true, SilenceUsage: true,
		PersistentPreRun: func(*cobra.Command, []string) { c.started = true },
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n") // as the other programs print it
	flags := root.PersistentFlags()
	flags.BoolVar(&c.json, "json", false, "print answers of the API, one JSON value per line")
	flags.StringVar(&c.url, "url", "", "the `address` of the service, such as https://links.example.com")
	flags.StringVar(&c.tokenFile, "token-file", "", "a `file` with the API token; - for standard input")
	root.AddCommand(c.loginCommand(), c.shortenCommand(), c.listCommand(), c.showCommand(), c.editCommand(),
		c.renameCommand(), c.deleteCommand(), c.restoreCommand(), c.reportCommand(), c.watchCommand(), c.qrCommand(),
		c.exportCommand(), c.importCommand(), c.mcpCommand())
	return root
}

// connect returns a client of the service that flags, the environment or the login name.
func (c *command) connect() (*client.Client, error) {
	base, token, err := c.credentials()
	if err != nil {
		return nil, err
	}
	return c.connectTo(base, token)
}

func (c *command) connectTo(base, token string) (*client.Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, usagef("%q is not an address such as https://links.example.com", base)
	}
	sender := &client.Sender{Token: token, Agent: "linkstream/" + version, Waits: func(wait time.Duration) {
		fmt.Fprintf(c.err, "The service asks to wait %v.\n", wait)
	}}
	return client.Connect(base, token, client.WithHTTPClient(sender))
}

// query returns an editor that adds parameters to the query of a request.
func query(values url.Values) client.RequestEditorFn {
	return func(_ context.Context, req *http.Request) error {
		all := req.URL.Query()
		for name := range values {
			all.Set(name, values.Get(name))
		}
		req.URL.RawQuery = all.Encode()
		return nil
	}
}

// parameters returns the parameters of a query that flags of a command set, which have their names with hyphens.
func parameters(cmd *cobra.Command, names ...string) url.Values {
	values := url.Values{}
	for _, name := range names {
		if flag := cmd.Flags().Lookup(strings.ReplaceAll(name, "_", "-")); flag != nil && flag.Changed {
			values.Set(name, flag.Value.String())
		}
	}
	return values
}
