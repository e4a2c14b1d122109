// Package invalidation publishes the changes of links and domains, so that every edge and every api process drops the
// cache entries that a change makes stale.
package invalidation

import (
	"context"
	"time"

	"linkstream/schema"
)

// Publisher sends a change to every process. Publish does not block and may drop changes under overload.
type Publisher interface {
	Publish(change schema.Change)
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

func (d database) SetActive(ctx context.Context, domainID int64, hash string, active bool) error {
	err := d.Database.SetActive(ctx, domainID, hash, active)
	if err == nil {
		d.publisher.Publish(schema.Change{DomainID: domainID, Hash: hash})
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
	err := d.Database.VerifyDomain(ctx, domainID, at)
	if err != nil {
		return err
	}
	domain, err := d.Database.Domain(ctx, domainID)
	if err == nil {
		d.publisher.Publish(schema.Change{Host: domain.Host})
	}
	return err
}

// DeleteDomain reads the domain first, because a change names the host.
func (d database) DeleteDomain(ctx context.Context, domainID int64) error {
	domain, err := d.Database.Domain(ctx, domainID)
	if err != nil {
		return err
	}
	err = d.Database.DeleteDomain(ctx, domainID)
	if err == nil {
		d.publisher.Publish(schema.Change{Host: domain.Host})
	}
	return err
}
