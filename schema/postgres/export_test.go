package postgres

// Queries are those whose plans are tested.
var Queries = map[string]string{
	"link by hash": linkByHash, "owned link": ownedLink, "page of links": linkPage, "token": tokenByDigest,
	"domain": domainByID, "domains of a host": domainsByHost, "verified domain": verifiedDomain,
	"domains": domainsOfAccount, "deleted domain": deleteDomain, "new link": createLink, "links by ID": linksByID,
	"tokens": tokensOfAccount, "use of tokens": useTokens, "session": sessionByDigest, "sessions": sessionsOfAccount,
	"attempt": countAttempt, "search": searchLinks,
}
