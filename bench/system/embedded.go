package system

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"linkstream/bench/proc"
	"linkstream/bench/workload"
	"linkstream/schema"
	linksqlite "linkstream/schema/linkstore/sqlite"
	"linkstream/schema/sqlite"
)

// standalone is the program with everything in one process, and its name in reports.
const standalone = "standalone"

// embedded is SQLite, in one process with the services.
type embedded struct {
	launcher *Launcher
	data     string // directory
}

func (e *embedded) Versions() []string { return nil }

func (e *embedded) linksPath() string { return filepath.Join(e.data, "links.db") }

func (e *embedded) OpenLinks(ctx context.Context) (LinkStore, error) {
	return linksqlite.Open(ctx, e.linksPath())
}

const insertLink = `INSERT INTO links (account_id, domain_id, hash, url, active, ordinal, created_at)
	VALUES (?, 0, ?, ?, 1, ?, ?)`

// InsertLinks inserts the links in one transaction.
func (e *embedded) InsertLinks(ctx context.Context, account int64, links workload.Links) error {
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
	for i := range links.Count {
		if _, err := insert.ExecContext(ctx, account, links.Hash(i), links.URL(i), i+1, now); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, `UPDATE accounts SET link_count = ? WHERE id = ?`, links.Count, account); err != nil {
		return err
	}
	return tx.Commit()
}

func (e *embedded) OpenClicks(ctx context.Context, name string) (ClickStore, error) {
	if name == "" {
		name = "clicks"
	}
	return sqlite.OpenClickStore(ctx, filepath.Join(e.data, name+".db"))
}

// AwaitMerges returns at once: SQLite has no background work.
func (e *embedded) AwaitMerges(context.Context) error { return nil }

// Broker returns no broker: the standalone program counts its clicks itself.
func (e *embedded) Broker() *Broker { return nil }

// EdgeCommand returns this program in a role, because the edge's own program does not open SQLite.
func (e *embedded) EdgeCommand(context.Context) (program string, args []string, err error) {
	program, err = os.Executable()
	return program, []string{edgeRole, "-links", e.linksPath()}, err
}

func (e *embedded) start(ctx context.Context) (*Service, error) {
	program, err := e.launcher.program(ctx, "deploy/standalone")
	if err != nil {
		return nil, err
	}
	s, err := newService(standalone, true)
	if err != nil {
		return nil, err
	}
	args := append(e.launcher.secureFlags(s), "-data", e.data, "-edge.listen", s.Edge,
		"-api.listen", s.API.Addr(), "-api.trusted-proxies", ProxyAddr, "-api.webhook-allow", "127.0.0.0/8", "-ops.listen",
		s.ops.edge, "-log.level", "warn")
	child, err := e.launcher.group.Start(standalone, nil, program, args...)
	if err != nil {
		return nil, err
	}
	s.children = []*proc.Child{child}
	s.AtEdge = []proc.Process{{Name: standalone, Usage: child.Usage}}
	s.AtAPI, s.Processes = s.AtEdge, s.AtEdge
	return s, nil
}

// BareLinkInsert returns transactions of one row each, synced to the disk. SQLite has one writer at a time, so one
// goroutine is as fast as many.
func (e *embedded) BareLinkInsert(ctx context.Context) (LinkCall, error) {
	path := e.launcher.group.Path("bare.db")
	store, err := linksqlite.Open(ctx, path) // creates the tables
	if err != nil {
		return LinkCall{}, err
	}
	account := schema.Account{Email: accountEmail, CreatedAt: time.Now()}
	if err := errors.Join(store.CreateAccount(ctx, &account), store.Close()); err != nil {
		return LinkCall{}, err
	}
	db, err := sql.Open("sqlite", "file:"+path+"?_journal_mode=WAL&_synchronous=FULL")
	if err != nil {
		return LinkCall{}, fmt.Errorf("open %q: %w", path, err)
	}
	e.launcher.group.OnClose(db.Close)
	db.SetMaxOpenConns(1)
	insert, err := db.PrepareContext(ctx, insertLink)
	if err != nil {
		return LinkCall{}, err
	}
	links, now := workload.NewLinks(workload.MaxLinks), time.Now().UnixMilli()
	return LinkCall{"bare SQLite insert", 1, func(ctx context.Context, n int64) error {
		_, err := insert.ExecContext(ctx, account.ID, links.Hash(int(n)), links.URL(int(n)), n, now)
		return err
	}}, nil
}

// BareLinkLookup returns look-ups of one row each, on connections of their own.
func (e *embedded) BareLinkLookup(ctx context.Context, links workload.Links) (LinkCall, error) {
	db, err := sql.Open("sqlite", "file:"+e.linksPath()+"?mode=ro")
	if err != nil {
		return LinkCall{}, fmt.Errorf("open %q: %w", e.linksPath(), err)
	}
	e.launcher.group.OnClose(db.Close)
	db.SetMaxOpenConns(bareConns)
	find, err := db.PrepareContext(ctx, `SELECT id, url FROM links WHERE domain_id = 0 AND hash = ?`)
	if err != nil {
		return LinkCall{}, err
	}
	return LinkCall{"bare SQLite look-up", bareConns, func(ctx context.Context, _ int64) error {
		var id int64
		var url string
		return find.QueryRowContext(ctx, links.Hash(rand.IntN(links.Count))).Scan(&id, &url)
	}}, nil
}

// ClickProcesses returns nil: SQLite is part of each program.
func (e *embedded) ClickProcesses() []proc.Process { return nil }

// BareClickInsert fails: SQLite keeps counters, which have no bare form.
func (e *embedded) BareClickInsert(context.Context) (ClickInsert, error) {
	return nil, errors.ErrUnsupported
}
