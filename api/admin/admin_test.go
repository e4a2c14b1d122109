package admin_test

import (
	"errors"
	"flag"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"linkstream/api/admin"
	"linkstream/schema"
	"linkstream/schema/linkstore"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/testkit"
)

// cli runs commands while a service has the same store open.
type cli struct{ *linkstore.Store }

func newCLI(t *testing.T) cli {
	t.Helper()
	path := filepath.Join(t.TempDir(), "links.db")
	sqlitetest.At(t, path) // the service's
	return cli{sqlitetest.At(t, path)}
}

func (c cli) run(t *testing.T, line string) (printed string, err error) {
	return c.runWith(t, line, "")
}

// runWith runs a command with a standard input.
func (c cli) runWith(t *testing.T, line, stdin string) (printed string, err error) {
	t.Helper()
	options := admin.Config{EdgeURL: schema.MustParseBaseURL("http://sho.rt:8080"), Parts: parts(strings.NewReader(stdin))}
	fs := flag.NewFlagSet("test", flag.ContinueOnError)
	options.RegisterFlags(fs)
	args, flags, _ := strings.Cut(line, " --")
	if flags != "" {
		testkit.Must(t, fs.Parse(strings.Fields("--"+flags)))
	}
	testkit.Must(t, options.Validate())
	var out strings.Builder
	err = admin.Run(t.Context(), c, options, strings.Fields(args), &out)
	return out.String(), err
}

// prints requires that the command succeeds, and returns the one line that it prints, "" if it prints nothing.
func (c cli) prints(t *testing.T, line string) string {
	t.Helper()
	printed, err := c.run(t, line)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	result, _ := strings.CutSuffix(printed, "\n")
	if strings.ContainsAny(result, " \n") || printed != "" && result == printed {
		t.Fatalf("%s printed %q", line, printed)
	}
	return result
}

func (c cli) printsNothing(t *testing.T, line string) {
	t.Helper()
	if result := c.prints(t, line); result != "" {
		t.Fatalf("%s printed %q", line, result)
	}
}

// fails requires that the command fails with the code and the reason, and prints nothing.
func (c cli) fails(t *testing.T, line string, code schema.Code, why string) {
	t.Helper()
	printed, err := c.run(t, line)
	if got := schema.ErrorCode(err); got != code || printed != "" {
		t.Fatalf("%s: code %q (error %v), printed %q, want code %q", line, got, err, printed, code)
	}
	if !strings.Contains(err.Error(), why) {
		t.Errorf("%s: the error %q does not contain %q", line, err, why)
	}
}

func number(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	testkit.Must(t, err)
	return n
}

func TestRunRefusesUnknownCommands(t *testing.T) {
	c := newCLI(t)
	for _, line := range []string{
		"", "account", "add", "account delete me@example.org", "tokens add", "Account add me@example.org", "help",
	} {
		t.Run(line, func(t *testing.T) { c.fails(t, line, schema.CodeInvalid, admin.Usage) })
	}
	for line, usage := range map[string]string{
		"account add":                   "account add EMAIL",
		"account add a@b.io c@d.io":     "account add EMAIL",
		"account suspend":               "account suspend EMAIL",
		"account reinstate":             "account reinstate EMAIL",
		"token add":                     "token add EMAIL",
		"token revoke":                  "token revoke ID",
		"token revoke 1 2":              "token revoke ID",
		"domain add a@b.io":             "domain add EMAIL HOST",
		"domain add a@b.io x.io y.io":   "domain add EMAIL HOST",
		"domain verify":                 "domain verify HOST",
		"domain remove":                 "domain remove HOST",
		"domain transfer x.io":          "domain transfer HOST EMAIL",
		"link off":                      "link off HASH",
		"link on abc def":               "link on HASH",
		"migrate now":                   "migrate",
		"import":                        "import EMAIL FILE",
		"import a@b.io":                 "import EMAIL FILE",
		"export":                        "export EMAIL",
		"domain add a@b.io  --verified": "domain add EMAIL HOST",
	} {
		t.Run(line, func(t *testing.T) { c.fails(t, line, schema.CodeInvalid, usage) })
	}
}

func TestUsageListsEveryCommand(t *testing.T) {
	for _, command := range []string{
		"account add EMAIL", "account password EMAIL", "account suspend EMAIL", "account reinstate EMAIL", "token add EMAIL",
		"token revoke ID", "domain add EMAIL HOST", "domain verify HOST", "domain remove HOST", "domain transfer HOST EMAIL",
		"link off HASH", "link on HASH", "migrate", "import EMAIL FILE", "export EMAIL",
	} {
		if !strings.Contains(admin.Usage, "\n  "+command+" ") {
			t.Errorf("%q is missing:\n%s", command, admin.Usage)
		}
	}
}

func TestRunReportsFailures(t *testing.T) {
	t.Run("of the store", func(t *testing.T) {
		c := newCLI(t)
		c.prints(t, "account add me@example.org")
		c.Close()
		for line, what := range map[string]string{
			"account add you@example.org":              "account add: create account",
			"account suspend me@example.org":           "account suspend: read account",
			"token add me@example.org":                 "token add: read account",
			"token revoke 1":                           "token revoke: revoke token",
			"token revoke ls_secret":                   "token revoke: read token",
			"domain add me@example.org go.example.org": "domain add: read account",
			"domain verify go.example.org":             "domain verify: read domains",
			"domain remove go.example.org":             "domain remove: read verified domain",
			"link off abc":                             "link off: set taken down",
		} {
			c.fails(t, line, schema.CodeInternal, what)
		}
	})
	t.Run("of the output", func(t *testing.T) {
		r, w := io.Pipe()
		broken := errors.New("broken pipe")
		r.CloseWithError(broken)
		err := admin.Run(t.Context(), newCLI(t), admin.Config{}, []string{"account", "add", "me@example.org"}, w)
		if !errors.Is(err, broken) {
			t.Errorf("%v", err)
		}
	})
}
