package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"

	"linkstream/bench/load"
	"linkstream/bench/proc"
	"linkstream/bench/report"
	"linkstream/schema"
	"linkstream/schema/sqlite"
)

// runShorten measures the making of links, beside a loop that inserts the same rows.
func runShorten(ctx context.Context, b *bench) error {
	service, err := b.open(ctx, newLinkSet(b.cfg.Links))
	if err != nil {
		return err
	}
	before, err := service.api.links(ctx, 1)
	if err != nil {
		return err
	}
	var created atomic.Int64
	whole := b.serviceSubject(service, service.api.addr(), func(int) load.Source {
		return &shortening{api: service.api, created: &created}
	})
	subjects := []*subject{whole}
	if b.cfg.Start {
		inserts, err := openBareInserts(ctx, filepath.Join(b.dir, "bare.db"))
		if err != nil {
			return err
		}
		b.stops = append(b.stops, inserts.db.Close)
		bare := &subject{name: "bare SQLite insert", processes: []process{{"bench", proc.Self}}, work: inserts.work}
		inserts.done = &bare.done
		subjects = []*subject{bare, whole}
	}
	if err := b.rounds(ctx, "link", subjects); err != nil {
		return err
	}
	if err := b.openLoop(ctx, "link", []*subject{whole}); err != nil {
		return err
	}
	after, err := service.api.links(ctx, 1)
	b.report.Checks = append(b.report.Checks, report.Check{Name: "new links in the list", Want: created.Load(),
		Got: int64(after.Meta.Total - before.Meta.Total)})
	return err
}

// shortening makes requests for new links, each of another URL.
type shortening struct {
	api     *api
	created *atomic.Int64
	body    []byte
}

// Append implements load.Source.
func (s *shortening) Append(dst []byte) []byte {
	s.body = fmt.Appendf(s.body[:0], `{"long_url": %q}`, fmt.Sprintf("%s%d%s", urlStart, time.Now().UnixNano(), urlEnd))
	return s.api.appendCall(dst, http.MethodPost, "/api/v1/shorten", s.body)
}

// Check implements load.Source.
func (s *shortening) Check(a load.Answer) error {
	if a.Status != http.StatusCreated {
		return statusError(a)
	}
	s.created.Add(1)
	return nil
}

// bareInserts inserts rows of links in transactions of their own, each synced to the disk, and does nothing else. SQLite
// has one writer at a time, so one goroutine is as fast as many.
type bareInserts struct {
	db      *sql.DB
	insert  *sql.Stmt
	account int64
	ordinal int
	done    *atomic.Int64
}

func openBareInserts(ctx context.Context, path string) (*bareInserts, error) {
	store, err := sqlite.OpenLinks(ctx, path) // makes the tables
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
	b := &bareInserts{account: account.ID}
	if b.db, err = sql.Open("sqlite", "file:"+path+"?_journal_mode=WAL&_synchronous=FULL"); err != nil {
		return nil, fmt.Errorf("open %q: %w", path, err)
	}
	b.db.SetMaxOpenConns(1)
	b.insert, err = b.db.PrepareContext(ctx, insertLink)
	return b, err
}

func (b *bareInserts) work(ctx context.Context, window time.Duration) (load.Result, error) {
	links, n := newLinkSet(maxLinks), int64(0)
	began := time.Now()
	for time.Since(began) < window {
		b.ordinal++
		_, err := b.insert.ExecContext(ctx, b.account, links.hash(b.ordinal), links.url(b.ordinal), b.ordinal, began.UnixMilli())
		if err != nil {
			return load.Result{}, fmt.Errorf("insert link: %w", err)
		}
		n++
		b.done.Add(1)
	}
	return load.Result{Answers: n, Elapsed: time.Since(began)}, nil
}
