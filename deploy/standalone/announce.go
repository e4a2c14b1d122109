package main

import (
	"context"
	"errors"
	"fmt"
	"time"
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
	fmt.Fprintf(a.out, "linkstream is ready\n\n  short links  %s\n  API          %s\n  data         %s\n", a.cfg.URL, a.apiURL(), a.cfg.Data)
	return nil
}

func (a *App) apiURL() string { return "http://" + a.api.Addr() }
