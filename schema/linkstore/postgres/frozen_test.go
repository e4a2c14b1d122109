//go:build engines

package postgres_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/linkstore/postgres"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func TestFrozen(t *testing.T) {
	t.Parallel()
	dsn := withParameter(t, engines.Postgres(t), "pool_max_conns", "4")
	storetest.TestFrozen(t, openLinks(t, dsn).Store, openLinks(t, dsn).Store)
}

func TestFrozenCrowd(t *testing.T) {
	t.Parallel()
	dsn := withParameter(t, engines.Postgres(t), "pool_max_conns", "4")
	storetest.TestFrozenCrowd(t, openLinks(t, dsn).Store, openLinks(t, dsn).Store)
}

func TestFrozenSender(t *testing.T) {
	t.Parallel()
	dsn := withParameter(t, engines.Postgres(t), "pool_max_conns", "4")
	storetest.TestFrozenSender(t, openLinks(t, dsn).Store, openLinks(t, dsn).Store)
}

// TestFrozenForLong lets a process stand still for longer than the server lets it hold its locks.
func TestFrozenForLong(t *testing.T) {
	t.Parallel()
	dsn := engines.Postgres(t)
	frozen, other := openLinks(t, dsn), openLinks(t, dsn)
	owner := schema.Account{Email: "a@example.org", CreatedAt: time.Now()}
	testkit.Must(t, other.CreateAccount(t.Context(), &owner))
	share := func(store schema.Database, digest byte) error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		return store.CreateShare(ctx, &schema.Share{AccountID: owner.ID, Digest: [32]byte{digest},
			CreatedAt: time.Now()})
	}
	reached, thaw, outcome := make(chan struct{}), make(chan struct{}), make(chan error)
	var steps atomic.Int64
	go func() {
		outcome <- share(storetest.Watched(frozen.Store, func(context.Context, storetest.Step) error {
			if steps.Add(1) == 3 { // it has locked the account
				close(reached)
				<-thaw
			}
			return nil
		}), 1)
	}()
	<-reached
	began := time.Now()
	err := share(other, 2)
	if took := time.Since(began); err != nil || took < time.Second || took > 4*time.Second {
		t.Errorf("the account is locked for %v: %v", took, err)
	}
	close(thaw)
	if err := <-outcome; err != nil {
		t.Errorf("the call of the process that stood still: %v", err)
	}
	shares, err := other.Shares(t.Context(), owner.ID)
	testkit.Must(t, err)
	testkit.Equal(t, "shares", len(shares), 2)
}

func TestSessionLimits(t *testing.T) {
	cfg := postgres.Config{DSN: "postgres://user@host/db?lock_timeout=7s"}
	got, err := cfg.Parameters()
	testkit.Must(t, err)
	testkit.Equal(t, "parameters", got, map[string]string{"lock_timeout": "7s", "max_parallel_workers_per_gather": "0",
		"idle_in_transaction_session_timeout": "2s", "tcp_user_timeout": "15s", "tcp_keepalives_idle": "5",
		"tcp_keepalives_interval": "5", "tcp_keepalives_count": "2"})
}
