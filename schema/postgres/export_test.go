package postgres

import (
	"context"
	"io/fs"
	"testing/fstest"

	"github.com/jackc/pgx/v5/pgxpool"

	"linkstream/schema"
)

// MigrateTo brings an empty database to a version of the schema. Version 0 leaves it empty.
func MigrateTo(ctx context.Context, dsn string, version int64) error {
	files := fstest.MapFS{}
	entries, err := fs.ReadDir(migrations(), ".")
	if err != nil || version == 0 {
		return err
	}
	for _, entry := range entries[:version] {
		text, err := fs.ReadFile(migrations(), entry.Name())
		if err != nil {
			return err
		}
		files[entry.Name()] = &fstest.MapFile{Data: text}
	}
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return err
	}
	defer pool.Close()
	return migrate(ctx, pool, files)
}

// Queries have their plans tested.
var Queries = map[string]string{
	"links by hash": linksByHash, "destinations": destinations, "owned links": ownedByHash, "page of links": linkPage, "gaps of links": linkGaps, "range of links": linkRange,
	"changed link": updateLink, "unchanged link": linkExists, "link password": linkPassword, "deleted link": deleteLinks, "link made anew": remakeLink, "link that was made anew": linkRemade,
	"domain": domainByID, "domains of a host": domainsByHost, "verified domain": verifiedDomain, "verified domains": verifiedDomains, "verified hosts": verifiedHosts,
	"certificate file": certificateFile, "certificate files": certificateFiles,
	"deleted certificate files": deleteCertificateFiles, "certificate lock": lockCertificate, "certificate unlock": unlockCertificate,
	"certificate state": certificateState, "new certificate state": noteCertificate,
	"domains": domainsOfAccount, "domains to check": domainsToCheck, "lost host": loseHost, "won host": winHost, "deleted domain": deleteDomain, "new link": createLink, "recorded call": recordedCall, "repeated call": hasCall, "forgotten call": forgetCall, "forgotten calls": forgetOldCalls, "new call": recordCall,
	"new links": createLinks, "locked domains": lockDomains, "locked account": lockOwner, "taken hashes": takenHashes,
	"rests of links": clearDeleted, "inserted links": insertLinks, "links by ID": linksByID, "counts of tags": tagCounts, "tagged links": taggedLinks,
	"session": sessionByDigest, "sessions": sessionsOfAccount,
	"deliveries": deliveries, "delivery to send again": resendDelivery, "old deliveries": forgetDeliveries,
}

func init() {
	Queries["links after"], _ = linksAfter(1, schema.LinkFilter{}, 400, 20)
	Queries["search"], _ = filteredPage(7, schema.LinkFilter{Words: []schema.LinkWord{{Texts: []string{"link"}}}}, 1)
}
