package sqlite

// The queries whose plans are tested.
var (
	LinkQueries = map[string]string{
		"link by hash": linkByHash, "owned link": ownedLink, "page of links": linkPage, "token": tokenByDigest,
		"account": accountByEmail, "domain": domainByID, "domains of a host": domainsByHost,
		"verified domain": verifiedDomain, "domains": domainsOfAccount, "link on a domain": linkOnDomain,
		"next ordinal": nextOrdinal, "links by ID": linksByID, "search": searchLinks, "found links": countFound,
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
