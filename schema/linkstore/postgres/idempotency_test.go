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

// TestCallUnderWay holds the account's row, so that the first call waits for it. A second call with the key does not.
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
	outcomes := make(chan error, 2)
	go func() { outcomes <- call(first, 1) }()
	awaitWaiter(t, watch, raw)
	if err := call(second, 1); !errors.Is(err, schema.ErrCallUnderWay) {
		t.Errorf("the second call: %v", err)
	}
	go func() { outcomes <- call(second, 2) }()
	exec(t, raw, "COMMIT")
	for range 2 {
		testkit.Must(t, <-outcomes)
	}
	if err := call(second, 1); !errors.Is(err, schema.ErrCallRepeated) {
		t.Errorf("a later call: %v", err)
	}
}
