package admin

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/cenkalti/backoff/v5"

	"linkstream/api/auth"
	"linkstream/schema"
	"linkstream/schema/service"
)

// Bootstrap presets the account that is made on the first start.
type Bootstrap struct {
	Email    string // "": none is made
	Password string // "": a random one
	Token    string // "": a random one
}

// RegisterFlags binds the settings to flags.
func (b *Bootstrap) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&b.Email, "bootstrap.email", b.Email, "`email` of the account made on the first start; \"\": none is made")
	fs.StringVar(&b.Password, "bootstrap.password", "", "its `password` (default a random one)")
	fs.StringVar(&b.Token, "bootstrap.token", "", "its API `token` (default a random one)")
}

// Validate finds nothing invalid: the values are checked when an account is made.
func (b *Bootstrap) Validate() error { return nil }

// Make makes the account if there is none at all and writes its secrets to out, which is the only time they are shown:
// call it when nothing else can fail any more. apiURL is for the example that is written with them.
func (b *Bootstrap) Make(ctx context.Context, accounts schema.AccountStore, apiURL string, out io.Writer) error {
	if b.Email == "" {
		return nil
	}
	first, created, err := auth.Bootstrap(ctx, accounts, b.Email, b.Password, b.Token)
	if err != nil || !created {
		return err
	}
	_, err = fmt.Fprintf(out, firstStart, first.Email, first.Password, first.Token, apiURL, first.Token)
	return err
}

// Await is Make, again while the store does not answer: its engine may go away just then.
func (b *Bootstrap) Await(
	ctx context.Context, report service.WaitReport, accounts schema.AccountStore, apiURL string, out io.Writer,
) error {
	_, err := service.Await(ctx, report, "Postgres", func(ctx context.Context) (struct{}, error) {
		err := b.Make(ctx, accounts, apiURL, out)
		if err != nil && schema.ErrorCode(err) != schema.CodeUnavailable {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	})
	return err
}

const firstStart = `This is the first start, so there is an account now. Its secrets are shown this once:

  email        %s
  password     %s
  API token    %s

Once linkstream is ready, make a short link:

  curl -s %s/api/v1/shorten -H 'Authorization: Bearer %s' -H 'Content-Type: application/json' -d '{"long_url": "https://go.dev/doc/"}'

`
