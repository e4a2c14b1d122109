// Package invalidation publishes the changes of links and domains, so that every edge drops the cache entries that a
// change makes stale. The store's outbox has each change from its transaction on, so what is here decides only how soon
// edges hear of it.
package invalidation

import (
	"context"
	"time"

	"linkstream/schema"
)

// database says when the outbox may have a new change.
type database struct {
	schema.Database
	changed func()
}

// Wrap returns a database that calls changed after each method that has left a change in the outbox, before the method
// returns.
func Wrap(db schema.Database, changed func()) schema.Database { return database{db, changed} }

func (d database) after(err error) error {
	if err == nil {
		d.changed()
	}
	return err
}

func (d database) CreateLink(ctx context.Context, link *schema.Link) error {
	return d.after(d.Database.CreateLink(ctx, link))
}

func (d database) CreateLinks(ctx context.Context, batch *schema.LinkBatch) error {
	return d.after(d.Database.CreateLinks(ctx, batch))
}

func (d database) UpdateLink(ctx context.Context, link *schema.Link, edit schema.LinkEdit, at time.Time) error {
	return d.after(d.Database.UpdateLink(ctx, link, edit, at))
}

func (d database) ChangeLinks(ctx context.Context, changes *schema.LinkChanges) error {
	return d.after(d.Database.ChangeLinks(ctx, changes))
}

func (d database) RestoreLink(
	ctx context.Context, accountID int64, hash string, domainID *int64, deletedAfter, at time.Time,
) (schema.Link, error) {
	link, err := d.Database.RestoreLink(ctx, accountID, hash, domainID, deletedAfter, at)
	return link, d.after(err)
}

func (d database) RestoreLinks(
	ctx context.Context, accountID int64, ids []int64, deletedAfter, at time.Time,
) (int64, error) {
	restored, err := d.Database.RestoreLinks(ctx, accountID, ids, deletedAfter, at)
	return restored, d.after(err)
}

func (d database) RestoreAs(
	ctx context.Context, link *schema.Link, edit schema.LinkEdit, deletedAfter, at time.Time,
) error {
	return d.after(d.Database.RestoreAs(ctx, link, edit, deletedAfter, at))
}

func (d database) DeleteLink(ctx context.Context, link schema.Link, at time.Time) error {
	return d.after(d.Database.DeleteLink(ctx, link, at))
}

func (d database) DeleteUnchanged(ctx context.Context, link schema.Link, at time.Time) error {
	return d.after(d.Database.DeleteUnchanged(ctx, link, at))
}

func (d database) SetTakenDown(ctx context.Context, domainID int64, hash string, takenDown bool) error {
	return d.after(d.Database.SetTakenDown(ctx, domainID, hash, takenDown))
}

func (d database) SetSuspended(ctx context.Context, accountID int64, suspended bool) error {
	return d.after(d.Database.SetSuspended(ctx, accountID, suspended))
}

func (d database) CreateDomain(ctx context.Context, domain *schema.Domain) error {
	return d.after(d.Database.CreateDomain(ctx, domain))
}

func (d database) SetSite(ctx context.Context, domainID int64, site schema.Site, links schema.AppLinks) error {
	return d.after(d.Database.SetSite(ctx, domainID, site, links))
}

func (d database) VerifyDomain(ctx context.Context, domainID int64, at time.Time) error {
	return d.after(d.Database.VerifyDomain(ctx, domainID, at))
}

func (d database) TransferDomain(ctx context.Context, domainID int64, at, checkAt time.Time) error {
	return d.after(d.Database.TransferDomain(ctx, domainID, at, checkAt))
}

func (d database) ReleaseDomain(ctx context.Context, domainID int64, at time.Time) error {
	return d.after(d.Database.ReleaseDomain(ctx, domainID, at))
}

func (d database) DeleteDomain(ctx context.Context, domainID int64) error {
	return d.after(d.Database.DeleteDomain(ctx, domainID))
}
