package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"linkstream/api/access"
	"linkstream/schema"
	"linkstream/schema/sqlite"
)

const seedEmail = "bench@localhost"

// seed fills the data directory of a service that has yet to start: an account, so many tokens, and the links.
func seed(ctx context.Context, data string, links linkSet, tokens int) (secrets []string, err error) {
	path := filepath.Join(data, "links.db")
	store, err := sqlite.OpenLinks(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	first, _, err := access.Bootstrap(ctx, store, seedEmail, "", "")
	if err != nil {
		return nil, err
	}
	account, err := store.AccountByEmail(ctx, seedEmail)
	if err != nil {
		return nil, err
	}
	secrets = []string{first.Token}
	for len(secrets) < tokens {
		secret, token := access.NewToken(account.ID, fmt.Sprintf("token %d", len(secrets)))
		if err := store.CreateToken(ctx, &token); err != nil {
			return nil, err
		}
		secrets = append(secrets, secret)
	}
	if err := insertLinks(ctx, path, account.ID, links); err != nil {
		return nil, fmt.Errorf("insert %d links: %w", links.count, err)
	}
	return secrets, checkLinks(ctx, store, account.ID, links)
}

const insertLink = `INSERT INTO links (account_id, domain_id, hash, url, active, ordinal, created_at)
	VALUES (?, 0, ?, ?, 1, ?, ?)`

// insertLinks inserts the links in one transaction. The store syncs each link that it creates to the disk, as it should:
// millions would take hours.
func insertLinks(ctx context.Context, path string, account int64, links linkSet) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	defer db.Close()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	insert, err := tx.PrepareContext(ctx, insertLink)
	if err != nil {
		return err
	}
	now := time.Now().UnixMilli()
	for i := range links.count {
		if _, err := insert.ExecContext(ctx, account, links.hash(i), links.url(i), i+1, now); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, `UPDATE accounts SET link_count = ? WHERE id = ?`, links.count, account); err != nil {
		return err
	}
	return tx.Commit()
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
