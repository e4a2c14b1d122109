package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"linkstream/api/dashboard"
)

const (
	announceEvery = 50 * time.Millisecond
	waitingEvery  = time.Minute
)

// announce waits until the whole service is ready and says where it is. A service that is not ready still does what it can:
// links are answered while a partition cannot be counted, for example. So announce never gives up, and logs what it waits
// for.
func (a *App) announce(ctx context.Context) {
	logAt := time.Now().Add(waitingEvery)
	for {
		err := errors.Join(a.edge.Ready(ctx), a.api.Ready(ctx), a.ingest.Ready(ctx))
		if err == nil {
			break
		}
		if now := time.Now(); now.After(logAt) {
			a.log.Warn("waiting until the service is ready", "error", err)
			logAt = now.Add(waitingEvery)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(announceEvery):
		}
	}
	fmt.Fprintf(a.out, ready, a.cfg.EdgeURL, a.api.URL().String()+dashboard.Root, a.api.URL(), a.ops.Addr(), a.cfg.Data)
}

const ready = `linkstream is ready

  short links  %s
  dashboard    %s
  API          %s
  operators    http://%s/readyz
  data         %s
`
