package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"linkstream/schema/linkstore"
	"linkstream/schema/migration"
)

//go:embed migrations
var migrationFiles embed.FS

// migrations returns the files of all migrations.
func migrations() fs.FS { return linkstore.Migrations(migrationFiles, spellings) }

// migrate applies the migrations that the database does not have. A lock lets one of several processes do so, in a
// session that the server ends if the process stands still. While other transactions use a table that is to be changed,
// migrate lets them go first again and again.
func migrate(ctx context.Context, pool *pgxpool.Pool, files fs.FS) error {
	session := pool.Config().ConnConfig
	session.RuntimeParams["idle_session_timeout"] = "10s"
	for {
		err := migrateIn(ctx, session, files)
		if answer := answerOf(err); answer == nil || answer.Code != lockNotAvailable || ctx.Err() != nil {
			return err
		}
	}
}

func migrateIn(ctx context.Context, session *pgx.ConnConfig, files fs.FS) (err error) {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 60)) // try each second, for a minute
	if err != nil {
		return err
	}
	db := stdlib.OpenDB(*session)
	defer func() { err = errors.Join(err, db.Close()) }()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithSessionLocker(locker),
		goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	return migration.Up(ctx, provider)
}

// checkSchema returns an error unless the database has exactly the migrations that the program has.
func checkSchema(ctx context.Context, pool *pgxpool.Pool) (err error) {
	db := stdlib.OpenDBFromPool(pool)
	defer func() { err = errors.Join(err, db.Close()) }() // the pool stays open
	return migration.Check(ctx, goose.DialectPostgres, db, migrations())
}
