package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"linkstream/api/dashboard"
)

const announceEvery = 50 * time.Millisecond

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
	fmt.Fprintf(a.out, ready, a.cfg.EdgeURL, a.api.URL().String()+dashboard.Root, a.api.URL(), a.ops.Addr(), a.cfg.Data)
	return nil
}

const ready = `linkstream is ready

  short links  %s
  dashboard    %s
  API          %s
  operators    http://%s/readyz
  data         %s
`
