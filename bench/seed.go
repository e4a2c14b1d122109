package main

import (
	"context"
	"errors"
	"fmt"

	"linkstream/api/admin"
	"linkstream/api/auth"
	"linkstream/schema"
)

const seedEmail = "bench@localhost"

// seed fills the store of a service that has yet to start: an account, so many tokens, and the links.
func seed(ctx context.Context, on engines, links linkSet, tokens int) (secrets []string, err error) {
	store, err := on.openLinks(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	first, _, err := admin.FirstAccount{Email: seedEmail}.Create(ctx, store)
	if err != nil {
		return nil, err
	}
	account, err := store.AccountByEmail(ctx, seedEmail)
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
	if err := on.insertLinks(ctx, account.ID, links); err != nil {
		return nil, fmt.Errorf("insert %d links: %w", links.count, err)
	}
	return secrets, checkLinks(ctx, store, account.ID, links)
}

// checkLinks holds the rows against what the store makes of them, in case its tables have changed.
func checkLinks(ctx context.Context, store schema.LinkStore, account int64, links linkSet) error {
	newest, total, err := store.Links(ctx, account, 1)
	if err != nil {
		return err
	}
	last := links.count - 1
	if total != int64(links.count) || newest[0].ID != total || newest[0].Hash != links.hash(last) ||
		newest[0].URL != links.url(last) || !newest[0].Active {
		return fmt.Errorf("the store has %d links, the newest of which is %+v: are its tables still what seed fills?",
			total, newest[0])
	}
	return nil
}
