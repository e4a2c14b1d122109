package storetest

import (
	"context"
	"reflect"
	"slices"
	"time"

	"linkstream/schema"
)

// Fault is called before each method of a faulty store, with the method's name. An error becomes the outcome of the
// method; after nil the real store is called. A Fault may wait until ctx is done, or change the real store.
// A nil Fault lets every call through.
type Fault func(ctx context.Context, method string) error

// FaultOf returns a Fault that calls fail for the named methods and lets all others through.
func FaultOf(fail func(context.Context) error, methods ...string) Fault {
	return func(ctx context.Context, method string) error {
		if slices.Contains(methods, method) {
			return fail(ctx)
		}
		return nil
	}
}

// FaultyDatabase is a Database whose methods fail when Fault says so.
type FaultyDatabase struct {
	schema.Database
	Fault Fault
}

// FaultyClicks is a FaultyDatabase for clicks.
type FaultyClicks struct {
	schema.ClickStore
	schema.ReportStore
	Fault Fault
}

// Methods returns the names of the methods of the interface S, such as schema.Database, that may fail.
func Methods[S any]() (names []string) {
	for method := range reflect.TypeFor[S]().Methods() {
		if method.Type.NumIn() > 0 && method.Type.In(0) == reflect.TypeFor[context.Context]() {
			names = append(names, method.Name)
		}
	}
	return names
}

// do calls f unless fault returns an error for the method; one and two do so for methods with results.
func do(ctx context.Context, fault Fault, method string, f func() error) error {
	if fault != nil {
		if err := fault(ctx, method); err != nil {
			return err
		}
	}
	return f()
}

func one[A any](ctx context.Context, fault Fault, method string, f func() (A, error)) (a A, err error) {
	err = do(ctx, fault, method, func() (err error) { a, err = f(); return err })
	return a, err
}

func two[A, B any](ctx context.Context, fault Fault, method string, f func() (A, B, error)) (a A, b B, err error) {
	err = do(ctx, fault, method, func() (err error) { a, b, err = f(); return err })
	return a, b, err
}

func (f FaultyDatabase) CreateLink(ctx context.Context, link *schema.Link) error {
	return do(ctx, f.Fault, "CreateLink", func() error { return f.Database.CreateLink(ctx, link) })
}

func (f FaultyDatabase) CreateLinks(ctx context.Context, batch *schema.LinkBatch) error {
	return do(ctx, f.Fault, "CreateLinks", func() error { return f.Database.CreateLinks(ctx, batch) })
}

func (f FaultyDatabase) UpdateLink(ctx context.Context, link *schema.Link, edit schema.LinkEdit, at time.Time) error {
	return do(ctx, f.Fault, "UpdateLink", func() error { return f.Database.UpdateLink(ctx, link, edit, at) })
}

func (f FaultyDatabase) RenameTag(ctx context.Context, accountID int64, from, to string, at time.Time) (int64, error) {
	return one(ctx, f.Fault, "RenameTag", func() (int64, error) { return f.Database.RenameTag(ctx, accountID, from, to, at) })
}

func (f FaultyDatabase) TagCounts(ctx context.Context, accountID int64, after string, limit int) ([]schema.TagCount, error) {
	return one(ctx, f.Fault, "TagCounts", func() ([]schema.TagCount, error) { return f.Database.TagCounts(ctx, accountID, after, limit) })
}

func (f FaultyDatabase) TaggedLinks(ctx context.Context, accountID, ordinal int64, limit int) ([]schema.TaggedLink, error) {
	return one(ctx, f.Fault, "TaggedLinks", func() ([]schema.TaggedLink, error) { return f.Database.TaggedLinks(ctx, accountID, ordinal, limit) })
}

func (f FaultyDatabase) DeleteLink(ctx context.Context, link schema.Link, at time.Time) error {
	return do(ctx, f.Fault, "DeleteLink", func() error { return f.Database.DeleteLink(ctx, link, at) })
}

func (f FaultyDatabase) ChangeLinks(ctx context.Context, changes *schema.LinkChanges) error {
	return do(ctx, f.Fault, "ChangeLinks", func() error { return f.Database.ChangeLinks(ctx, changes) })
}

func (f FaultyDatabase) RestoreLink(
	ctx context.Context, accountID int64, hash string, domainID *int64, deletedAfter, at time.Time,
) (schema.Link, error) {
	return one(ctx, f.Fault, "RestoreLink", func() (schema.Link, error) {
		return f.Database.RestoreLink(ctx, accountID, hash, domainID, deletedAfter, at)
	})
}

func (f FaultyDatabase) PurgeLinks(ctx context.Context, deletedBy time.Time, limit int) (int64, error) {
	return one(ctx, f.Fault, "PurgeLinks", func() (int64, error) { return f.Database.PurgeLinks(ctx, deletedBy, limit) })
}

func (f FaultyDatabase) OwnedLinks(ctx context.Context, accountID int64, hashes []string) ([]schema.Link, error) {
	return one(ctx, f.Fault, "OwnedLinks", func() ([]schema.Link, error) { return f.Database.OwnedLinks(ctx, accountID, hashes) })
}

func (f FaultyDatabase) LinksByHash(ctx context.Context, keys []schema.LinkKey) ([]schema.Link, error) {
	return one(ctx, f.Fault, "LinksByHash", func() ([]schema.Link, error) { return f.Database.LinksByHash(ctx, keys) })
}

func (f FaultyDatabase) Destinations(ctx context.Context, keys []schema.LinkKey) ([]schema.Destination, error) {
	return one(ctx, f.Fault, "Destinations", func() ([]schema.Destination, error) { return f.Database.Destinations(ctx, keys) })
}

func (f FaultyDatabase) Links(ctx context.Context, accountID int64, filter schema.LinkFilter, page int64) ([]schema.Link, int64, error) {
	return two(ctx, f.Fault, "Links", func() ([]schema.Link, int64, error) { return f.Database.Links(ctx, accountID, filter, page) })
}

func (f FaultyDatabase) LinkIDs(ctx context.Context, accountID int64, filter schema.LinkFilter, limit int) ([]int64, error) {
	return one(ctx, f.Fault, "LinkIDs", func() ([]int64, error) { return f.Database.LinkIDs(ctx, accountID, filter, limit) })
}

func (f FaultyDatabase) LinksAfter(ctx context.Context, accountID int64, filter schema.LinkFilter, ordinal int64, limit int) ([]schema.Link, error) {
	return one(ctx, f.Fault, "LinksAfter", func() ([]schema.Link, error) { return f.Database.LinksAfter(ctx, accountID, filter, ordinal, limit) })
}

func (f FaultyDatabase) LinksByID(ctx context.Context, accountID int64, ids []int64) ([]schema.Link, error) {
	return one(ctx, f.Fault, "LinksByID", func() ([]schema.Link, error) { return f.Database.LinksByID(ctx, accountID, ids) })
}

func (f FaultyDatabase) LinkPassword(ctx context.Context, id int64) (string, int64, error) {
	return two(ctx, f.Fault, "LinkPassword", func() (string, int64, error) { return f.Database.LinkPassword(ctx, id) })
}

func (f FaultyDatabase) SetTakenDown(ctx context.Context, domainID int64, hash string, takenDown bool) error {
	return do(ctx, f.Fault, "SetTakenDown", func() error { return f.Database.SetTakenDown(ctx, domainID, hash, takenDown) })
}

func (f FaultyDatabase) RecordedCall(ctx context.Context, call schema.IdempotentCall) (schema.RecordedCall, error) {
	return one(ctx, f.Fault, "RecordedCall", func() (schema.RecordedCall, error) { return f.Database.RecordedCall(ctx, call) })
}

func (f FaultyDatabase) CreateAccount(ctx context.Context, account *schema.Account) error {
	return do(ctx, f.Fault, "CreateAccount", func() error { return f.Database.CreateAccount(ctx, account) })
}

func (f FaultyDatabase) CreateFirstAccount(ctx context.Context, account *schema.Account, token *schema.Token) error {
	return do(ctx, f.Fault, "CreateFirstAccount", func() error { return f.Database.CreateFirstAccount(ctx, account, token) })
}

func (f FaultyDatabase) AccountByEmail(ctx context.Context, email string) (schema.Account, error) {
	return one(ctx, f.Fault, "AccountByEmail", func() (schema.Account, error) { return f.Database.AccountByEmail(ctx, email) })
}

func (f FaultyDatabase) SetSuspended(ctx context.Context, accountID int64, suspended bool) error {
	return do(ctx, f.Fault, "SetSuspended", func() error { return f.Database.SetSuspended(ctx, accountID, suspended) })
}

func (f FaultyDatabase) SetTimeZone(ctx context.Context, accountID int64, zone string) error {
	return do(ctx, f.Fault, "SetTimeZone", func() error { return f.Database.SetTimeZone(ctx, accountID, zone) })
}

func (f FaultyDatabase) SetPassword(ctx context.Context, accountID int64, passwordHash string, keepSessionID int64) error {
	return do(ctx, f.Fault, "SetPassword", func() error { return f.Database.SetPassword(ctx, accountID, passwordHash, keepSessionID) })
}

func (f FaultyDatabase) CreateToken(ctx context.Context, token *schema.Token) error {
	return do(ctx, f.Fault, "CreateToken", func() error { return f.Database.CreateToken(ctx, token) })
}

func (f FaultyDatabase) TokenByDigest(ctx context.Context, digest [32]byte) (schema.Token, schema.Account, error) {
	return two(ctx, f.Fault, "TokenByDigest", func() (schema.Token, schema.Account, error) { return f.Database.TokenByDigest(ctx, digest) })
}

func (f FaultyDatabase) RevokeToken(ctx context.Context, tokenID int64, at time.Time) error {
	return do(ctx, f.Fault, "RevokeToken", func() error { return f.Database.RevokeToken(ctx, tokenID, at) })
}

func (f FaultyDatabase) Tokens(ctx context.Context, accountID int64) ([]schema.Token, error) {
	return one(ctx, f.Fault, "Tokens", func() ([]schema.Token, error) { return f.Database.Tokens(ctx, accountID) })
}

func (f FaultyDatabase) UseTokens(ctx context.Context, usedAt map[int64]time.Time) error {
	return do(ctx, f.Fault, "UseTokens", func() error { return f.Database.UseTokens(ctx, usedAt) })
}

func (f FaultyDatabase) CreateSession(ctx context.Context, session *schema.Session, passwordHash string) error {
	return do(ctx, f.Fault, "CreateSession", func() error { return f.Database.CreateSession(ctx, session, passwordHash) })
}

func (f FaultyDatabase) SessionByDigest(ctx context.Context, digest [32]byte, now time.Time) (schema.Session, schema.Account, error) {
	return two(ctx, f.Fault, "SessionByDigest", func() (schema.Session, schema.Account, error) { return f.Database.SessionByDigest(ctx, digest, now) })
}

func (f FaultyDatabase) Sessions(ctx context.Context, accountID int64, now time.Time) ([]schema.Session, error) {
	return one(ctx, f.Fault, "Sessions", func() ([]schema.Session, error) { return f.Database.Sessions(ctx, accountID, now) })
}

func (f FaultyDatabase) ExtendSession(ctx context.Context, sessionID int64, seenAt, expiresAt time.Time) error {
	return do(ctx, f.Fault, "ExtendSession", func() error { return f.Database.ExtendSession(ctx, sessionID, seenAt, expiresAt) })
}

func (f FaultyDatabase) EndSession(ctx context.Context, accountID, sessionID int64) error {
	return do(ctx, f.Fault, "EndSession", func() error { return f.Database.EndSession(ctx, accountID, sessionID) })
}

func (f FaultyDatabase) CountAttempts(ctx context.Context, attempts []schema.Attempts) ([]int64, error) {
	return one(ctx, f.Fault, "CountAttempts", func() ([]int64, error) { return f.Database.CountAttempts(ctx, attempts) })
}

func (f FaultyDatabase) CreateDomain(ctx context.Context, domain *schema.Domain) error {
	return do(ctx, f.Fault, "CreateDomain", func() error { return f.Database.CreateDomain(ctx, domain) })
}

func (f FaultyDatabase) Domain(ctx context.Context, domainID int64) (schema.Domain, error) {
	return one(ctx, f.Fault, "Domain", func() (schema.Domain, error) { return f.Database.Domain(ctx, domainID) })
}

func (f FaultyDatabase) DomainsByHost(ctx context.Context, host string) ([]schema.Domain, error) {
	return one(ctx, f.Fault, "DomainsByHost", func() ([]schema.Domain, error) { return f.Database.DomainsByHost(ctx, host) })
}

func (f FaultyDatabase) VerifiedDomain(ctx context.Context, host string) (schema.Domain, error) {
	return one(ctx, f.Fault, "VerifiedDomain", func() (schema.Domain, error) { return f.Database.VerifiedDomain(ctx, host) })
}

func (f FaultyDatabase) VerifiedHosts(ctx context.Context, hosts []string) ([]string, error) {
	return one(ctx, f.Fault, "VerifiedHosts", func() ([]string, error) { return f.Database.VerifiedHosts(ctx, hosts) })
}

func (f FaultyDatabase) VerifiedDomains(ctx context.Context, after int64, limit int) ([]schema.Domain, error) {
	return one(ctx, f.Fault, "VerifiedDomains", func() ([]schema.Domain, error) { return f.Database.VerifiedDomains(ctx, after, limit) })
}

func (f FaultyDatabase) VerifyDomain(ctx context.Context, domainID int64, at time.Time) error {
	return do(ctx, f.Fault, "VerifyDomain", func() error { return f.Database.VerifyDomain(ctx, domainID, at) })
}

func (f FaultyDatabase) SetSite(ctx context.Context, domainID int64, site schema.Site, links schema.AppLinks) error {
	return do(ctx, f.Fault, "SetSite", func() error { return f.Database.SetSite(ctx, domainID, site, links) })
}

func (f FaultyDatabase) AppLinks(ctx context.Context, domainID int64) (schema.AppLinks, error) {
	return one(ctx, f.Fault, "AppLinks", func() (schema.AppLinks, error) { return f.Database.AppLinks(ctx, domainID) })
}

func (f FaultyDatabase) Domains(ctx context.Context, accountID int64) ([]schema.Domain, error) {
	return one(ctx, f.Fault, "Domains", func() ([]schema.Domain, error) { return f.Database.Domains(ctx, accountID) })
}

func (f FaultyDatabase) DeleteDomain(ctx context.Context, domainID int64) error {
	return do(ctx, f.Fault, "DeleteDomain", func() error { return f.Database.DeleteDomain(ctx, domainID) })
}

func (f FaultyDatabase) DomainsToCheck(ctx context.Context, now, again time.Time, limit int) ([]schema.Domain, error) {
	return one(ctx, f.Fault, "DomainsToCheck", func() ([]schema.Domain, error) { return f.Database.DomainsToCheck(ctx, now, again, limit) })
}

func (f FaultyDatabase) NoteDomainCheck(ctx context.Context, domainID int64, failingSince, checkAt time.Time) error {
	return do(ctx, f.Fault, "NoteDomainCheck", func() error { return f.Database.NoteDomainCheck(ctx, domainID, failingSince, checkAt) })
}

func (f FaultyDatabase) ContestDomain(ctx context.Context, domainID, by int64, at time.Time) error {
	return do(ctx, f.Fault, "ContestDomain", func() error { return f.Database.ContestDomain(ctx, domainID, by, at) })
}

func (f FaultyDatabase) TransferDomain(ctx context.Context, domainID int64, at, checkAt time.Time) error {
	return do(ctx, f.Fault, "TransferDomain", func() error { return f.Database.TransferDomain(ctx, domainID, at, checkAt) })
}

func (f FaultyDatabase) ReleaseDomain(ctx context.Context, domainID int64, at time.Time) error {
	return do(ctx, f.Fault, "ReleaseDomain", func() error { return f.Database.ReleaseDomain(ctx, domainID, at) })
}

func (f FaultyDatabase) LeaseRequests(ctx context.Context, tokenID int64, window time.Time, limit int) (int, int, error) {
	return two(ctx, f.Fault, "LeaseRequests", func() (int, int, error) { return f.Database.LeaseRequests(ctx, tokenID, window, limit) })
}

func (f FaultyClicks) Position(ctx context.Context, partition int) (schema.Position, error) {
	return one(ctx, f.Fault, "Position", func() (schema.Position, error) { return f.ClickStore.Position(ctx, partition) })
}

func (f FaultyClicks) LaneMarks(ctx context.Context, lanes []schema.Lane) ([]uint64, error) {
	return one(ctx, f.Fault, "LaneMarks", func() ([]uint64, error) { return f.ClickStore.LaneMarks(ctx, lanes) })
}

func (f FaultyClicks) ClickSums(ctx context.Context) (map[string]uint64, error) {
	return one(ctx, f.Fault, "ClickSums", func() (map[string]uint64, error) { return f.ClickStore.ClickSums(ctx) })
}

func (f FaultyClicks) InsertClicks(ctx context.Context, batch *schema.ClickBatch) error {
	return do(ctx, f.Fault, "InsertClicks", func() error { return f.ClickStore.InsertClicks(ctx, batch) })
}

func (f FaultyClicks) LaneCounts(ctx context.Context, each func(schema.LaneCount) error) error {
	return do(ctx, f.Fault, "LaneCounts", func() error { return f.ClickStore.LaneCounts(ctx, each) })
}

func (f FaultyClicks) LaneGaps(ctx context.Context, lane schema.Lane) ([]schema.Gap, error) {
	return one(ctx, f.Fault, "LaneGaps", func() ([]schema.Gap, error) { return f.ClickStore.LaneGaps(ctx, lane) })
}

func (f FaultyClicks) LinkStats(ctx context.Context, linkID int64) (schema.Stats, error) {
	return one(ctx, f.Fault, "LinkStats", func() (schema.Stats, error) { return f.ClickStore.LinkStats(ctx, linkID) })
}

func (f FaultyClicks) ClickTotals(ctx context.Context, links, accounts []int64) (ofLinks, ofAccounts map[int64]schema.Period, err error) {
	err = do(ctx, f.Fault, "ClickTotals", func() (err error) {
		ofLinks, ofAccounts, err = f.ClickStore.ClickTotals(ctx, links, accounts)
		return err
	})
	return ofLinks, ofAccounts, err
}

func (f FaultyClicks) ClickCounts(ctx context.Context, accountID int64, linkIDs []int64) (map[int64]int64, error) {
	return one(ctx, f.Fault, "ClickCounts", func() (map[int64]int64, error) { return f.ClickStore.ClickCounts(ctx, accountID, linkIDs) })
}

func (f FaultyClicks) ClickSeries(ctx context.Context, accountID int64, linkIDs []int64, bounds []time.Time) (map[int64][]int64, error) {
	return one(ctx, f.Fault, "ClickSeries", func() (map[int64][]int64, error) { return f.ReportStore.ClickSeries(ctx, accountID, linkIDs, bounds) })
}

func (f FaultyDatabase) PutCertificateFile(ctx context.Context, key string, value []byte) error {
	return do(ctx, f.Fault, "PutCertificateFile", func() error { return f.Database.PutCertificateFile(ctx, key, value) })
}

func (f FaultyDatabase) CertificateFile(ctx context.Context, key string) (schema.CertificateFile, error) {
	return one(ctx, f.Fault, "CertificateFile", func() (schema.CertificateFile, error) { return f.Database.CertificateFile(ctx, key) })
}

func (f FaultyDatabase) CertificateFiles(ctx context.Context, folder string) ([]schema.CertificateFile, error) {
	return one(ctx, f.Fault, "CertificateFiles", func() ([]schema.CertificateFile, error) { return f.Database.CertificateFiles(ctx, folder) })
}

func (f FaultyDatabase) DeleteCertificateFiles(ctx context.Context, key string) error {
	return do(ctx, f.Fault, "DeleteCertificateFiles", func() error { return f.Database.DeleteCertificateFiles(ctx, key) })
}

func (f FaultyDatabase) LockCertificate(ctx context.Context, name, holder string, lease time.Duration) (bool, error) {
	return one(ctx, f.Fault, "LockCertificate", func() (bool, error) { return f.Database.LockCertificate(ctx, name, holder, lease) })
}

func (f FaultyDatabase) UnlockCertificate(ctx context.Context, name, holder string) error {
	return do(ctx, f.Fault, "UnlockCertificate", func() error { return f.Database.UnlockCertificate(ctx, name, holder) })
}

func (f FaultyDatabase) NoteCertificate(ctx context.Context, state schema.CertificateState) error {
	return do(ctx, f.Fault, "NoteCertificate", func() error { return f.Database.NoteCertificate(ctx, state) })
}

func (f FaultyDatabase) SharedValue(ctx context.Context, name string, first []byte) ([]byte, error) {
	return one(ctx, f.Fault, "SharedValue", func() ([]byte, error) { return f.Database.SharedValue(ctx, name, first) })
}

func (f FaultyDatabase) SetSharedValue(ctx context.Context, name string, value []byte) error {
	return do(ctx, f.Fault, "SetSharedValue", func() error { return f.Database.SetSharedValue(ctx, name, value) })
}

func (f FaultyDatabase) DeleteSharedValues(ctx context.Context, from, before string) error {
	return do(ctx, f.Fault, "DeleteSharedValues", func() error { return f.Database.DeleteSharedValues(ctx, from, before) })
}

func (f FaultyDatabase) CertificateState(ctx context.Context, host string) (schema.CertificateState, error) {
	return one(ctx, f.Fault, "CertificateState", func() (schema.CertificateState, error) { return f.Database.CertificateState(ctx, host) })
}

func (f FaultyClicks) Report(ctx context.Context, query schema.ReportQuery) (schema.Report, error) {
	return one(ctx, f.Fault, "Report", func() (schema.Report, error) { return f.ReportStore.Report(ctx, query) })
}

func (f FaultyClicks) ReportDetail(ctx context.Context) (schema.ReportDetail, error) {
	return one(ctx, f.Fault, "ReportDetail", func() (schema.ReportDetail, error) { return f.ReportStore.ReportDetail(ctx) })
}

func (f FaultyDatabase) ValidSessions(ctx context.Context, ids []int64, now time.Time) ([]int64, error) {
	return one(ctx, f.Fault, "ValidSessions", func() ([]int64, error) { return f.Database.ValidSessions(ctx, ids, now) })
}

func (f FaultyDatabase) ValidTokens(ctx context.Context, ids []int64) ([]int64, error) {
	return one(ctx, f.Fault, "ValidTokens", func() ([]int64, error) { return f.Database.ValidTokens(ctx, ids) })
}

func (f FaultyDatabase) PutImport(ctx context.Context, status schema.ImportStatus, old time.Time) error {
	return do(ctx, f.Fault, "PutImport", func() error { return f.Database.PutImport(ctx, status, old) })
}

func (f FaultyDatabase) UpdateImport(ctx context.Context, status schema.ImportStatus) error {
	return do(ctx, f.Fault, "UpdateImport", func() error { return f.Database.UpdateImport(ctx, status) })
}

func (f FaultyDatabase) RequestImport(ctx context.Context, accountID int64, id string, at time.Time) error {
	return do(ctx, f.Fault, "RequestImport", func() error { return f.Database.RequestImport(ctx, accountID, id, at) })
}

func (f FaultyDatabase) ImportErrors(ctx context.Context, accountID int64) (string, error) {
	return one(ctx, f.Fault, "ImportErrors", func() (string, error) { return f.Database.ImportErrors(ctx, accountID) })
}

func (f FaultyDatabase) ImportStatus(ctx context.Context, accountID int64) (schema.ImportStatus, error) {
	return one(ctx, f.Fault, "ImportStatus", func() (schema.ImportStatus, error) { return f.Database.ImportStatus(ctx, accountID) })
}

func (f FaultyDatabase) PendingChanges(ctx context.Context, after int64) (schema.Pending, error) {
	return one(ctx, f.Fault, "PendingChanges", func() (schema.Pending, error) { return f.Database.PendingChanges(ctx, after) })
}

func (f FaultyDatabase) TakeChanges(ctx context.Context, publish func([]schema.Change) error) (bool, error) {
	return one(ctx, f.Fault, "TakeChanges", func() (bool, error) { return f.Database.TakeChanges(ctx, publish) })
}
