package stream

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"

	"linkstream/schema"
)

const (
	changesQueue = 4096 // announcements that wait to be sent
	changesBatch = 512  // of them in one request
	changesWait  = 5 * time.Second
	changesRetry = 500 * time.Millisecond
	// changesLinger is how long fewer than that gather: many links are made at a time, and a request costs more than a
	// record.
	changesLinger = 20 * time.Millisecond
)

// Announcer sends changes to every node that follows them. It never makes its caller wait: an announcement that finds
// no room is dropped, and the time for which caches trust their entries bounds what that does.
type Announcer struct {
	client  *Client
	queue   chan schema.Change
	dropped atomic.Int64 // announcements since the last ones were sent
	log     *slog.Logger
}

// NewAnnouncer returns an announcer that sends once it Runs.
func NewAnnouncer(client *Client, log *slog.Logger) *Announcer {
	return &Announcer{client: client, queue: make(chan schema.Change, changesQueue), log: log}
}

// Announce sends a change.
func (a *Announcer) Announce(change schema.Change) {
	select {
	case a.queue <- change:
	default:
		if a.dropped.Add(1) == 1 { // thousands a second may follow
			a.log.Warn("changes are not announced, too many are waiting")
		}
	}
}

// Run sends what is announced until ctx is done, and then what is still waiting, if the broker answers.
func (a *Announcer) Run(ctx context.Context) {
	sending := context.WithoutCancel(ctx)
	for {
		select {
		case <-ctx.Done():
			for len(a.queue) > 0 && a.send(sending, a.waiting(<-a.queue)) == nil {
				continue
			}
			return
		case change := <-a.queue:
			if len(a.queue) < changesBatch {
				Sleep(ctx, changesLinger)
			}
			changes := a.waiting(change)
			for a.send(sending, changes) != nil && ctx.Err() == nil {
				Sleep(ctx, changesRetry)
			}
		}
	}
}

// waiting returns first and what waits behind it.
func (a *Announcer) waiting(first schema.Change) []schema.Change {
	changes := []schema.Change{first}
	for len(a.queue) > 0 && len(changes) < changesBatch {
		changes = append(changes, <-a.queue)
	}
	return changes
}

func (a *Announcer) send(ctx context.Context, changes []schema.Change) error {
	now := time.Now()
	records := make([]kafka.Record, len(changes))
	for i, change := range changes {
		key := []byte(change.Key())
		records[i] = kafka.Record{Time: now, Key: kafka.NewBytes(key), Value: kafka.NewBytes(key)}
	}
	err := a.client.produceRecords(ctx, a.client.cfg.Changes, 0, kafka.NewRecordReader(records...))
	if err != nil {
		a.log.Warn("changes cannot be announced", "changes", len(changes), "error", err)
		return err
	}
	if n := a.dropped.Swap(0); n > 0 {
		a.log.Warn("changes are announced again, some were not", "changes", n)
	}
	return nil
}

// FollowChanges calls each for every change that is announced from now on, until ctx is done. A change may come more
// than once.
func (c *Client) FollowChanges(ctx context.Context, each func(schema.Change)) {
	next, known := int64(0), false
	for ctx.Err() == nil {
		err := error(nil)
		if !known {
			_, next, err = c.offsets(ctx, c.cfg.Changes, 0)
			known = err == nil
		} else {
			_, err = c.fetch(ctx, c.cfg.Changes, 0, next, changesWait, func(r Record) error {
				next = r.Offset + 1
				if change, ok := schema.ParseChange(string(r.Value)); ok {
					each(change)
				}
				return nil
			})
			known = !errors.Is(err, ErrOffsetOutOfRange) // the topic was made anew: begin at its end
		}
		if err != nil && ctx.Err() == nil {
			c.log.Info("changes cannot be followed, trying again", "error", err)
			Sleep(ctx, changesRetry)
		}
	}
}

// announced is a database whose changes of links and domains are announced once they are stored.
type announced struct {
	schema.Database
	announcer *Announcer
}

// Announced returns db as one that announces its changes of links and domains.
func Announced(db schema.Database, announcer *Announcer) schema.Database {
	return announced{db, announcer}
}

// CreateLink also ends the time for which caches remember that there was no such link.
func (d announced) CreateLink(ctx context.Context, link *schema.Link) error {
	err := d.Database.CreateLink(ctx, link)
	if err == nil {
		d.announcer.Announce(schema.Change{DomainID: link.DomainID, Hash: link.Hash})
	}
	return err
}

func (d announced) SetActive(ctx context.Context, domainID int64, hash string, active bool) error {
	err := d.Database.SetActive(ctx, domainID, hash, active)
	if err == nil {
		d.announcer.Announce(schema.Change{DomainID: domainID, Hash: hash})
	}
	return err
}

func (d announced) CreateDomain(ctx context.Context, domain *schema.Domain) error {
	err := d.Database.CreateDomain(ctx, domain)
	if err == nil && !domain.VerifiedAt.IsZero() {
		d.announcer.Announce(schema.Change{Host: domain.Host})
	}
	return err
}

func (d announced) VerifyDomain(ctx context.Context, domainID int64, at time.Time) error {
	err := d.Database.VerifyDomain(ctx, domainID, at)
	if err != nil {
		return err
	}
	domain, err := d.Database.Domain(ctx, domainID)
	if err == nil {
		d.announcer.Announce(schema.Change{Host: domain.Host})
	}
	return err
}

// DeleteDomain reads the domain first: what is announced is its host.
func (d announced) DeleteDomain(ctx context.Context, domainID int64) error {
	domain, err := d.Database.Domain(ctx, domainID)
	if err != nil {
		return err
	}
	err = d.Database.DeleteDomain(ctx, domainID)
	if err == nil {
		d.announcer.Announce(schema.Change{Host: domain.Host})
	}
	return err
}
