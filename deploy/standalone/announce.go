package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"linkstream/api/access"
)

const announceEvery = 50 * time.Millisecond

// welcome says how to get in.
func (a *App) welcome(first access.Credentials) {
	fmt.Fprintf(a.out, firstStart, first.Email, first.Password, first.Token, a.apiURL(), first.Token)
}

// announce waits until the whole service is ready and says where it is.
func (a *App) announce(ctx context.Context) error {
	deadline := time.Now().Add(startTimeout)
	for {
		err := errors.Join(a.edge.Ready(ctx), a.api.Ready(ctx), a.ingest.Ready(ctx))
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not ready after %v: %w", startTimeout, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(announceEvery):
		}
	}
	fmt.Fprintf(a.out, "linkstream is ready\n\n  short links  %s\n  API          %s\n  data         %s\n", a.cfg.URL, a.apiURL(), a.cfg.Data)
	return nil
}

func (a *App) apiURL() string { return "http://" + a.api.Addr() }

const firstStart = `This is the first start, so there is an account now. Its secrets are shown this once:

  email        %s
  password     %s
  API token    %s

Once linkstream is ready, make a short link:

  curl -s %s/api/v1/shorten -H 'Authorization: Bearer %s' -H 'Content-Type: application/json' -d '{"long_url": "https://go.dev/doc/"}'

`
