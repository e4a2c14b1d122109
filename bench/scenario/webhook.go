package scenario

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"linkstream/api/auth"
	"linkstream/api/webhook"
	"linkstream/bench/system"
	"linkstream/bench/workload"
	"linkstream/schema"
)

// webhookCounts are how many webhooks are on while the CPU time at fixed rates is measured, with -webhooks. Up to
// schema.MaxWebhooks belong to the account that has all clicks, and receive each; the others belong to accounts without
// clicks.
var webhookCounts = []int{0, 1, 100}

// clickHooks are webhooks of clicks of a started service, and their receiver, which is in this process.
type clickHooks struct {
	store    system.LinkStore
	hooks    []schema.Webhook
	on       int // of hooks; the hooks of the account with the clicks come first
	received atomic.Int64
}

// newClickHooks creates the webhooks, which are off.
func (r *run) newClickHooks(ctx context.Context, service *system.Service) (*clickHooks, error) {
	store, err := service.Engines.OpenLinks(ctx)
	if err != nil {
		return nil, err
	}
	r.group.OnClose(store.Close)
	h := &clickHooks{store: store}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	receiver := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	r.group.OnClose(receiver.Close)
	go receiver.Serve(listener)
	account, now := int64(workload.Account), time.Now().UTC()
	for n := range webhookCounts[len(webhookCounts)-1] {
		if n > 0 && n%schema.MaxWebhooks == 0 {
			other := schema.Account{Email: fmt.Sprintf("hearer-%d@localhost", n),
				PasswordHash: auth.HashPassword(auth.NewPassword()), CreatedAt: now}
			if err := store.CreateAccount(ctx, &other); err != nil {
				return nil, err
			}
			account = other.ID
		}
		hook := schema.Webhook{AccountID: account, URL: "http://" + listener.Addr().String() + "/",
			Events: []string{schema.EventLinkClicked},
			Secret: webhook.NewSecret(), CreatedAt: now, UpdatedAt: now}
		if err := store.CreateWebhook(ctx, &hook); err != nil {
			return nil, err
		}
		h.hooks = append(h.hooks, hook)
	}
	return h, nil
}

// ServeHTTP counts the clicks of a delivery.
func (h *clickHooks) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if body, err := io.ReadAll(req.Body); err == nil {
		h.received.Add(int64(bytes.Count(body, []byte(`"clicked_at":`))))
	}
}

// switchTo switches the first on webhooks on, and all others off.
func (h *clickHooks) switchTo(ctx context.Context, on int) error {
	h.on = on
	for i, hook := range h.hooks {
		if hook.Active == (i < on) {
			continue
		}
		h.hooks[i].Active, h.hooks[i].UpdatedAt = i < on, time.Now().UTC()
		if err := h.store.UpdateWebhook(ctx, &h.hooks[i]); err != nil {
			return err
		}
	}
	return nil
}

// awaitDelivered waits until each webhook that is on has delivered this many more clicks than the receiver had counted
// before.
func (h *clickHooks) awaitDelivered(ctx context.Context, before, clicks int64) error {
	ctx, cancel := context.WithTimeout(ctx, system.AwaitTimeout)
	defer cancel()
	want := before + clicks*int64(min(h.on, schema.MaxWebhooks))
	for h.received.Load() < want {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("wait until %d clicks are delivered to webhooks: %d are: %w", want-before,
				h.received.Load()-before, ctx.Err())
		}
	}
	return nil
}
