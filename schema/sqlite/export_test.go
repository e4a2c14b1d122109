package sqlite

// The queries whose plans are tested.
var (
	LinkQueries = map[string]string{
		"link by hash": linkByHash, "owned link": ownedLink, "page of links": linkPage, "token": tokenByDigest,
		"account": accountByEmail, "domain": domainByID, "domains of a host": domainsByHost,
		"verified domain": verifiedDomain,
	}
	ClickQueries = map[string]string{
		"position": position, "marks": laneMarks, "days": clicksByDay, "devices": clicksByDevice,
		"browsers": clicksByBrowser, "counts": clickCounts,
		"report's days": reportDays, "report's devices": reportDevices, "report's browsers": reportBrowsers,
		"report's sources": reportSources, "account's days": accountDays, "account's links": accountLinks,
	}
)
