package postgres

import (
	"context"
	"testing/fstest"

	"github.com/jackc/pgx/v5/pgxpool"
)

// MigrateOld makes the tables that the migrations before sessions make.
func MigrateOld(ctx context.Context, dsn string) error {
	files := fstest.MapFS{}
	for _, name := range []string{"00001_links.sql", "00002_rate.sql"} {
		text, err := migrations.ReadFile("migrations/" + name)
		if err != nil {
			return err
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return err
	}
	defer pool.Close()
	return migrate(ctx, pool, files)
}

// Queries are those whose plans are tested.
var Queries = map[string]string{
	"link by hash": linkByHash, "owned link": ownedLink, "page of links": linkPage, "token": tokenByDigest,
	"domain": domainByID, "domains of a host": domainsByHost, "verified domain": verifiedDomain,
	"domains": domainsOfAccount, "deleted domain": deleteDomain, "new link": createLink, "new links": createLinks, "links by ID": linksByID,
	"tokens": tokensOfAccount, "use of tokens": useTokens, "session": sessionByDigest, "sessions": sessionsOfAccount,
	"attempt": countAttempt, "search": searchLinks,
}
