package system

import (
	"context"
	"errors"
	"fmt"

	"linkstream/api/admin"
	"linkstream/api/auth"
	"linkstream/bench/workload"
	"linkstream/schema"
)

const (
	accountEmail = "bench@localhost"
	tokens       = 512 // of a started system, enough for a million requests per minute
)

// CreateLinks fills the store of a system that has yet to start with an account, its API tokens and its links. It
// returns the tokens.
func CreateLinks(ctx context.Context, on Engines, links workload.Links) (secrets []string, err error) {
	store, err := on.OpenLinks(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	first, _, err := admin.FirstAccount{Email: accountEmail}.Create(ctx, store)
	if err != nil {
		return nil, err
	}
	account, err := store.AccountByEmail(ctx, accountEmail)
	if err != nil {
		return nil, err
	}
	secrets = []string{first.Token}
	for len(secrets) < tokens {
		secret, token := auth.NewToken(account.ID, fmt.Sprintf("token %d", len(secrets)))
		if err := store.CreateToken(ctx, &token); err != nil {
			return nil, err
		}
		secrets = append(secrets, secret)
	}
	if err := on.InsertLinks(ctx, account.ID, links); err != nil {
		return nil, fmt.Errorf("insert %d links: %w", links.Count, err)
	}
	return secrets, checkLinks(ctx, store, account.ID, links)
}

// checkLinks reads the inserted rows through the store, which fails if the tables have changed since InsertLinks was
// written.
func checkLinks(ctx context.Context, store schema.LinkStore, account int64, links workload.Links) error {
	newest, total, err := store.Links(ctx, account, 1)
	if err != nil {
		return err
	}
	last := links.Count - 1
	if total != int64(links.Count) || newest[0].ID != total || newest[0].Hash != links.Hash(last) ||
		newest[0].URL != links.URL(last) || !newest[0].Active {
		return fmt.Errorf("the store has %d links, the newest is %+v: InsertLinks does not match the tables", total, newest[0])
	}
	return nil
}
