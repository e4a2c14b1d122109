// Package invalidation publishes the changes of links and domains, so that every edge and every api process drops the
// cache entries that a change makes stale.
package invalidation

import (
	"context"
	"time"

	"linkstream/schema"
)

// Publisher sends changes to every process, and may drop some under overload. Publish does not block. PublishNew is for links that
// are created together: it leaves room for other changes, and may wait a moment.
type Publisher interface {
	Publish(change schema.Change)
	PublishNew(changes []schema.Change)
}

// database publishes a change after the change is stored.
type database struct {
	schema.Database
	publisher Publisher
}

// Wrap returns a database that stores in db and publishes what it changes.
func Wrap(db schema.Database, publisher Publisher) schema.Database {
	return database{db, publisher}
}

// CreateLink publishes too, because caches hold negative entries.
func (d database) CreateLink(ctx context.Context, link *schema.Link) error {
	err := d.Database.CreateLink(ctx, link)
	if err == nil {
		d.publisher.Publish(schema.Change{DomainID: link.DomainID, Hash: link.Hash})
	}
	return err
}

func (d database) CreateLinks(ctx context.Context, batch *schema.LinkBatch) error {
	err := d.Database.CreateLinks(ctx, batch)
	if err != nil {
		return err
	}
	var created []schema.Change
	for i, link := range batch.Links {
		if batch.Errs[i] == nil {
			created = append(created, schema.Change{DomainID: link.DomainID, Hash: link.Hash})
		}
	}
	d.publisher.PublishNew(created)
	return nil
}

func (d database) UpdateLink(ctx context.Context, link *schema.Link, edit schema.LinkEdit, at time.Time) error {
	err := d.Database.UpdateLink(ctx, link, edit, at)
	if err == nil {
		d.publisher.Publish(schema.Change{DomainID: link.DomainID, Hash: link.Hash})
	}
	return err
}

func (d database) DeleteLink(ctx context.Context, link schema.Link, at time.Time) error {
	err := d.Database.DeleteLink(ctx, link, at)
	if err == nil {
		d.publisher.Publish(schema.Change{DomainID: link.DomainID, Hash: link.Hash})
	}
	return err
}

func (d database) SetTakenDown(ctx context.Context, domainID int64, hash string, takenDown bool) error {
	err := d.Database.SetTakenDown(ctx, domainID, hash, takenDown)
	if err == nil {
		d.publisher.Publish(schema.Change{DomainID: domainID, Hash: hash})
	}
	return err
}

// SetSuspended publishes that all links of the account have changed.
func (d database) SetSuspended(ctx context.Context, accountID int64, suspended bool) error {
	err := d.Database.SetSuspended(ctx, accountID, suspended)
	if err == nil {
		d.publisher.Publish(schema.Change{AccountID: accountID})
	}
	return err
}

// CreateDomain publishes verified domains only: no cache knows of the others.
func (d database) CreateDomain(ctx context.Context, domain *schema.Domain) error {
	err := d.Database.CreateDomain(ctx, domain)
	if err == nil && !domain.VerifiedAt.IsZero() {
		d.publisher.Publish(schema.Change{Host: domain.Host})
	}
	return err
}

func (d database) VerifyDomain(ctx context.Context, domainID int64, at time.Time) error {
	return d.changeHost(ctx, domainID, func() error { return d.Database.VerifyDomain(ctx, domainID, at) })
}

func (d database) TransferDomain(ctx context.Context, domainID int64, at, checkAt time.Time) error {
	return d.changeHost(ctx, domainID, func() error { return d.Database.TransferDomain(ctx, domainID, at, checkAt) })
}

func (d database) ReleaseDomain(ctx context.Context, domainID int64, at time.Time) error {
	return d.changeHost(ctx, domainID, func() error { return d.Database.ReleaseDomain(ctx, domainID, at) })
}

func (d database) DeleteDomain(ctx context.Context, domainID int64) error {
	return d.changeHost(ctx, domainID, func() error { return d.Database.DeleteDomain(ctx, domainID) })
}

// changeHost calls change and publishes that the host of the domain has changed. It reads the domain first, because after
// change it may be gone.
func (d database) changeHost(ctx context.Context, domainID int64, change func() error) error {
	domain, err := d.Database.Domain(ctx, domainID)
	if err != nil {
		return err
	}
	if err = change(); err == nil {
		d.publisher.Publish(schema.Change{Host: domain.Host})
	}
	return err
}
