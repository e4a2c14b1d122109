package sqlite

import (
	"context"
	"testing/fstest"
)

// CreateFirstClicks makes the file that the first migration makes.
func CreateFirstClicks(ctx context.Context, path string) error {
	return createOld(ctx, path, "migrations/clicks/", "00001_clicks.sql")
}

// CreateOldLinks makes the file that the migrations before sessions make.
func CreateOldLinks(ctx context.Context, path string) error {
	return createOld(ctx, path, "migrations/links/", "00001_links.sql", "00002_rate.sql")
}

func createOld(ctx context.Context, path, folder string, names ...string) error {
	files := fstest.MapFS{}
	for _, name := range names {
		text, err := migrations.ReadFile(folder + name)
		if err != nil {
			return err
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	db, err := openFile(ctx, path, "NORMAL", files)
	if err != nil {
		return err
	}
	return db.close()
}

// The queries whose plans are tested.
var (
	LinkQueries = map[string]string{
		"link by hash": linkByHash, "owned link": ownedLink, "page of links": linkPage, "token": tokenByDigest,
		"account": accountByEmail, "domain": domainByID, "domains of a host": domainsByHost,
		"verified domain": verifiedDomain, "domains": domainsOfAccount, "link on a domain": linkOnDomain,
		"new link": createLink, "count of links": countLink, "links by ID": linksByID, "search": searchLinks, "found links": countFound,
		"tokens": tokensOfAccount, "use of tokens": useTokens, "session": sessionByDigest, "sessions": sessionsOfAccount,
		"old attempts": forgetAttempts,
	}
	ClickQueries = map[string]string{
		"position": position, "marks": laneMarks, "days": clicksByDay, "devices": clicksByDevice,
		"browsers": clicksByBrowser, "counts": clickCounts,
		"report's days": reportDays, "report's devices": reportDevices, "report's browsers": reportBrowsers,
		"report's sources": reportSources, "account's days": accountDays, "account's links": accountLinks,
	}
)
