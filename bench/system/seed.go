package system

import (
	"context"
	"errors"
	"fmt"
	"time"

	"linkstream/api/admin"
	"linkstream/api/auth"
	"linkstream/bench/workload"
	"linkstream/schema"
)

const (
	accountEmail = "bench@localhost"
	tokenCount   = 512 // of a started system, enough for a million requests per minute
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
	more, err := createTokens(ctx, store, account.ID, tokenCount-1)
	if err != nil {
		return nil, err
	}
	if err := on.InsertLinks(ctx, account.ID, links); err != nil {
		return nil, fmt.Errorf("insert %d links: %w", links.Count, err)
	}
	return append([]string{first.Token}, more...), checkLinks(ctx, store, account.ID, 1, links)
}

// createTokens returns new API tokens of an account.
func createTokens(ctx context.Context, store schema.TokenStore, account int64, count int) (secrets []string,
	err error) {
	for n := range count {
		secret, token := auth.NewToken(account, fmt.Sprintf("token %d", n+1))
		if err := store.CreateToken(ctx, &token); err != nil {
			return nil, err
		}
		secrets = append(secrets, secret)
	}
	return secrets, nil
}

// Catalogue is an additional account, with its links and API tokens.
type Catalogue struct {
	Account, FirstID int64 // of the account, and of its first link
	Links            workload.Links
	tokens           []string
	session          string // of the dashboard
}

// CreateCatalogue adds an account with links to the store of a system that has yet to start. firstID is the ID of its
// first link.
func CreateCatalogue(ctx context.Context, on Engines, firstID int64, links workload.Links) (c Catalogue, err error) {
	store, err := on.OpenLinks(ctx)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	account := schema.Account{Email: fmt.Sprintf("catalogue-%d@localhost", links.Count),
		PasswordHash: auth.HashPassword(auth.NewPassword()),
		CreatedAt:    time.Now().UTC().AddDate(-1, 0, 0)}
	if err := store.CreateAccount(ctx, &account); err != nil {
		return c, err
	}
	c = Catalogue{Account: account.ID, FirstID: firstID, Links: links}
	if c.tokens, err = createTokens(ctx, store, account.ID, tokenCount/10); err != nil {
		return c, err
	}
	if c.session, _, err = auth.NewSessions(store).Begin(ctx, account, "bench"); err != nil {
		return c, err
	}
	if err := on.InsertLinks(ctx, account.ID, links); err != nil {
		return c, fmt.Errorf("insert %d links: %w", links.Count, err)
	}
	return c, checkLinks(ctx, store, account.ID, firstID, links)
}

// checkLinks reads the inserted rows through the store, which fails if the tables have changed since InsertLinks was
// written.
func checkLinks(ctx context.Context, store schema.LinkStore, account, firstID int64, links workload.Links) error {
	newest, total, err := store.Links(ctx, account, schema.LinkFilter{}, 1)
	if err != nil {
		return err
	}
	last := links.Count - 1
	if total != int64(links.Count) || newest[0].ID != firstID-1+total || newest[0].Hash != links.Hash(last) ||
		newest[0].URL != links.URL(last) || !newest[0].Active {
		return fmt.Errorf("the store has %d links, the newest is %+v: InsertLinks does not match the tables",
			total, newest[0])
	}
	return nil
}
