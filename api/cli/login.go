package cli

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"linkstream/api/client"
)

// login is what the file of "linkstream login" has.
type login struct {
	URL   string `json:"url"`
	Token string `json:"token"`
}

func (c *command) loginCommand() *cobra.Command {
	return &cobra.Command{
		Use: "login URL", Short: "Remember the address of a service and an API token", Args: cobra.ExactArgs(1),
		Long: `Remember the address of a service and an API token, which the page API of its dashboard makes.

The token is asked for, or read from standard input if that is no terminal. It is kept in a file that only you can read:
login.json in the folder linkstream of your configuration.`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			token, err := c.askToken()
			if err != nil {
				return err
			}
			api, err := c.connectTo(args[0], token)
			if err != nil {
				return err
			}
			resp, err := api.GetAccount(cmd.Context())
			account, err := client.Read[client.AccountAnswer](resp, err)
			if err != nil {
				return err
			}
			if err := saveLogin(login{strings.TrimRight(args[0], "/"), token}); err != nil {
				return err
			}
			return c.print(cell(account.Account.Email) + "\n")
		},
	}
}

// askToken returns the token that the user types, or the first line of standard input or of the file that a flag names.
func (c *command) askToken() (string, error) {
	if c.tokenFile != "" {
		return c.readToken(c.tokenFile)
	}
	if is, _ := terminal(c.in); !is {
		return c.readToken("-")
	}
	fmt.Fprint(c.err, "API token: ")
	token, err := term.ReadPassword(int(c.in.Fd()))
	fmt.Fprintln(c.err)
	return checkToken(string(token), err)
}

// readToken returns the first line of a file, which is - for standard input.
func (c *command) readToken(name string) (string, error) {
	file := c.in
	if name != "-" {
		var err error
		if file, err = os.Open(name); err != nil {
			return "", usageError{err}
		}
		defer file.Close()
	}
	line, err := bufio.NewReader(io.LimitReader(file, 4096)).ReadString('\n')
	if err == io.EOF {
		err = nil
	}
	return checkToken(line, err)
}

func checkToken(text string, err error) (token string, _ error) {
	if token = strings.TrimSpace(text); err == nil && (token == "" || strings.ContainsFunc(token, func(r rune) bool {
		return r <= ' ' || r > '~'
	})) {
		err = usagef("that is not an API token")
	}
	return token, err
}

// loginFile returns the path of the file of the login.
func loginFile() (string, error) {
	dir, err := os.UserConfigDir()
	return filepath.Join(dir, "linkstream", "login.json"), err
}

// saveLogin replaces the file of the login.
func saveLogin(l login) error {
	path, err := loginFile()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "login-*") // of mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // fails after the renaming
	if err := errors.Join(json.NewEncoder(file).Encode(l), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// credentials returns the address and the token from flags, the environment or the login, in this order. The token of
// the login is for its address alone.
func (c *command) credentials() (base, token string, err error) {
	var saved login
	if path, err := loginFile(); err == nil {
		text, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(text, &saved)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", "", fmt.Errorf("read the login: %w", err)
		}
	}
	base = strings.TrimRight(cmp.Or(c.url, os.Getenv("LINKSTREAM_URL"), saved.URL), "/")
	if base == "" {
		return "", "", usagef(`there is no address: run "linkstream login URL", or set LINKSTREAM_URL`)
	}
	if file := cmp.Or(c.tokenFile, os.Getenv("LINKSTREAM_TOKEN_FILE")); file != "" {
		token, err = c.readToken(file)
		return base, token, err
	}
	if token = os.Getenv("LINKSTREAM_TOKEN"); token == "" && base == saved.URL {
		token = saved.Token
	}
	if token == "" {
		return "", "", usagef(`there is no API token for %s: run "linkstream login %s", or set LINKSTREAM_TOKEN`, base, base)
	}
	token, err = checkToken(token, nil)
	return base, token, err
}
