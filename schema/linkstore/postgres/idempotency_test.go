//go:build engines

package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func TestOldCalls(t *testing.T) {
	t.Parallel()
	dsn := engines.Postgres(t)
	links, raw := openLinks(t, dsn), openRaw(t, dsn)
	storetest.TestOldCalls(t, links, func() (n int) {
		testkit.Must(t, raw.QueryRow(t.Context(), `SELECT count(*) FROM idempotency_keys`).Scan(&n))
		return n
	}, func(accountID, number int64) {
		_, err := raw.Exec(t.Context(), `UPDATE idempotency_keys SET number = $2
			WHERE account_id = $1 AND number = (SELECT max(number) FROM idempotency_keys WHERE account_id = $1)`, accountID,
			number)
		testkit.Must(t, err)
	})
}

// TestCallUnderWay holds the account's row, so that a call waits for it. Another call with the key does not: it may be
// the first one, which tries again from time to time.
func TestCallUnderWay(t *testing.T) {
	t.Parallel()
	dsn := engines.Postgres(t)
	first, second, raw, watch := openLinks(t, dsn), openLinks(t, dsn), openRaw(t, dsn), openRaw(t, dsn)
	owner := schema.Account{Email: "a@example.org", CreatedAt: time.Now()}
	testkit.Must(t, first.CreateAccount(t.Context(), &owner))
	call := func(store schema.LinkStore, key byte) error {
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
		defer cancel()
		return store.CreateLinks(ctx, &schema.LinkBatch{
			AccountID: owner.ID, Links: []schema.Link{{CreatedAt: time.Now()}}, NewHash: schema.NewHash,
			Call:   &schema.IdempotentCall{AccountID: owner.ID, Key: [32]byte{key}, At: time.Now()},
			Answer: func([]schema.Link, []error) ([]byte, error) { return []byte("answer"), nil },
		})
	}
	exec(t, raw, "BEGIN; SELECT FROM accounts FOR UPDATE")
	same, other := make(chan error, 2), make(chan error, 1)
	go func() { same <- call(first, 1) }()
	awaitWaiter(t, watch, raw)
	go func() { same <- call(second, 1) }()
	if err := <-same; !errors.Is(err, schema.ErrCallUnderWay) {
		t.Errorf("one of two calls: %v", err)
	}
	go func() { other <- call(second, 2) }()
	exec(t, raw, "COMMIT")
	testkit.Must(t, <-same)
	testkit.Must(t, <-other)
	if err := call(second, 1); !errors.Is(err, schema.ErrCallRepeated) {
		t.Errorf("a later call: %v", err)
	}
}
