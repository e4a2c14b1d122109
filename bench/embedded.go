package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"linkstream/bench/proc"
	"linkstream/schema"
	"linkstream/schema/sqlite"
)

// embedded are SQLite and the embedded broker, in one process with the services.
type embedded struct {
	bench *bench
	data  string // folder
}

func (e *embedded) linksPath() string { return filepath.Join(e.data, "links.db") }

func (e *embedded) openLinks(ctx context.Context) (linkStore, error) {
	return sqlite.Open(ctx, e.linksPath())
}

const insertLink = `INSERT INTO links (account_id, domain_id, hash, url, active, ordinal, created_at)
	VALUES (?, 0, ?, ?, 1, ?, ?)`

// insertLinks inserts the links in one transaction.
func (e *embedded) insertLinks(ctx context.Context, account int64, links linkSet) error {
	db, err := sql.Open("sqlite", e.linksPath())
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

func (e *embedded) openClicks(ctx context.Context, name string) (clickStore, error) {
	if name == "" {
		name = "clicks"
	}
	return sqlite.OpenClicks(ctx, filepath.Join(e.data, name+".db"))
}

// rest has nothing to wait for.
func (e *embedded) rest(context.Context) error { return nil }

func (e *embedded) broker(ctx context.Context) (addr string, processes []process, err error) {
	child, addr, err := e.bench.role(ctx, "broker", "serve-broker", filepath.Join(e.bench.dir, "broker"))
	if err != nil {
		return "", nil, err
	}
	return addr, []process{{"broker", child.Usage}}, nil
}

// edge is this program in a role: there is no edge on SQLite but for the one in the standalone.
func (e *embedded) edge(context.Context) (program string, args []string, err error) {
	program, err = os.Executable()
	return program, []string{"serve-edge", "-links", e.linksPath()}, err
}

func (e *embedded) start(ctx context.Context) (*runningService, error) {
	program, err := e.bench.build(ctx, "deploy/standalone")
	if err != nil {
		return nil, err
	}
	s, err := newService(standalone)
	if err != nil {
		return nil, err
	}
	child, err := e.bench.spawn(standalone, nil, program, "-data", e.data, "-edge.listen", s.edge,
		"-api.listen", s.api.addr(), "-ingest.listen", s.ingest, "-log.level", "warn")
	if err != nil {
		return nil, err
	}
	s.children = []*proc.Child{child}
	s.atEdge = []process{{standalone, child.Usage}}
	s.atAPI = s.atEdge
	return s, nil
}

// bareInserts returns a loop of transactions of one row each, synced to the disk. SQLite has one writer at a time, so one
// goroutine is as fast as many.
func (e *embedded) bareInserts(ctx context.Context) (*subject, error) {
	path := filepath.Join(e.bench.dir, "bare.db")
	store, err := sqlite.Open(ctx, path) // makes the tables
	if err != nil {
		return nil, err
	}
	account := schema.Account{Email: seedEmail, CreatedAt: time.Now()}
	err = store.CreateAccount(ctx, &account)
	if closed := store.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", "file:"+path+"?_journal_mode=WAL&_synchronous=FULL")
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", path, err)
	}
	e.bench.stops = append(e.bench.stops, db.Close)
	db.SetMaxOpenConns(1)
	insert, err := db.PrepareContext(ctx, insertLink)
	if err != nil {
		return nil, err
	}
	links, now := newLinkSet(maxLinks), time.Now().UnixMilli()
	return newLoop("bare SQLite insert", 1, func(ctx context.Context, n int64) error {
		_, err := insert.ExecContext(ctx, account.ID, links.hash(int(n)), links.url(int(n)), n, now)
		return err
	}), nil
}

// bareCounting has no loop of its own: what is compared is the reading of the topic.
func (e *embedded) bareCounting(_ context.Context, _ int, fetch *subject) ([]*subject, error) {
	return []*subject{fetch}, nil
}
