package admin

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/cenkalti/backoff/v5"

	"linkstream/api/auth"
	"linkstream/schema"
	"linkstream/schema/service"
)

// DefaultEmail is the email of the first account where a program creates one unasked.
const DefaultEmail = "admin@localhost"

// FirstAccount is the account with one API token that is created when the store has no account at all.
type FirstAccount struct {
	Email    string // "": no account is created
	Password string // "": a random one
	Token    string // "": a random one
}

// RegisterFlags binds the settings to flags.
func (f *FirstAccount) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&f.Email, "bootstrap.email", f.Email, "`email` of the account created on first start; \"\" creates none")
	schema.SecretVar(fs, &f.Password, "bootstrap.password", "`password` of that account (default random)")
	schema.SecretVar(fs, &f.Token, "bootstrap.token", "API `token` of that account (default random)")
}

// Validate always succeeds: Create checks the values, because random values replace empty ones.
func (f *FirstAccount) Validate() error { return nil }

// Create creates the account and returns it with the random values filled in. If there is an account already, it
// changes nothing and returns false; so does an empty Email. CodeInvalid names every value that is wrong, also if there
// is an account already.
func (f FirstAccount) Create(ctx context.Context, accounts schema.AccountStore) (FirstAccount, bool, error) {
	if f.Email == "" {
		return FirstAccount{}, false, nil
	}
	const tokenName = "first token"
	randomToken, _ := auth.NewToken(0, tokenName)
	f.Password, f.Token = cmp.Or(f.Password, auth.NewPassword()), cmp.Or(f.Token, randomToken)
	email, emailErr := auth.ParseEmail(f.Email)
	token, tokenErr := auth.ParseToken(0, tokenName, f.Token)
	if err := errors.Join(emailErr, auth.ValidatePassword(f.Password), tokenErr); err != nil {
		return FirstAccount{}, false, fmt.Errorf("create first account: %w", err)
	}
	f.Email = email
	account := schema.Account{Email: email, PasswordHash: auth.HashPassword(f.Password), CreatedAt: time.Now().UTC()}
	switch err := accounts.CreateFirstAccount(ctx, &account, &token); schema.ErrorCode(err) {
	case "":
		return f, true, nil
	case schema.CodeConflict:
		return FirstAccount{}, false, nil
	default:
		return FirstAccount{}, false, fmt.Errorf("create first account: %w", err)
	}
}

// CreateAndReport creates the account and returns a text with the secrets that it generated, or "" if there is an
// account already. The text is the only place where they appear, so call it last, when nothing else can fail. It leaves
// out secrets that the operator chose: output ends up in logs. apiURL goes into the example of the text.
func (f FirstAccount) CreateAndReport(ctx context.Context, accounts schema.AccountStore,
	apiURL schema.BaseURL) (text string, err error) {
	first, created, err := f.Create(ctx, accounts)
	if err != nil || !created {
		return "", err
	}
	password, token, bearer := first.Password, first.Token, first.Token
	if f.Password != "" {
		password = asConfigured
	}
	if f.Token != "" {
		token, bearer = asConfigured, tokenPlaceholder
	}
	return fmt.Sprintf(firstStart, first.Email, password, token, apiURL, bearer), nil
}

// AwaitAndPrint is CreateAndReport, retried while the store is unavailable, and writes the text to out.
func (f FirstAccount) AwaitAndPrint(
	ctx context.Context, report service.WaitReport, accounts schema.AccountStore, apiURL schema.BaseURL, out io.Writer,
) error {
	return service.AwaitOK(ctx, report, "Postgres", func(ctx context.Context) error {
		text, err := f.CreateAndReport(ctx, accounts, apiURL)
		if err != nil && schema.ErrorCode(err) != schema.CodeUnavailable {
			err = backoff.Permanent(err)
		}
		if err == nil {
			_, err = io.WriteString(out, text)
		}
		return err
	})
}

// Placeholders are printed instead of secrets that the operator chose.
const (
	asConfigured     = "as configured"
	tokenPlaceholder = "YOUR_TOKEN"
)

const firstStart = `
This is the first start: an account was created. Generated secrets are shown only this once:

  email        %s
  password     %s
  API token    %s

Create a short link:

  curl -s %s/api/v1/shorten -H 'Authorization: Bearer %s' ` +
	`-H 'Content-Type: application/json' -d '{"long_url": "https://go.dev/doc/"}'

`
