package reads

import (
	"context"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema"
)

// links is a link store whose reads take turns.
type links struct {
	schema.Database
	turns *store
}

// Links returns db with reads that take turns. It counts refused reads in set.
func Links(db schema.Database, set *metrics.Set) schema.Database {
	return links{db, newStore("links", db.Readers(), set)}
}

// list calls f, a long read, when it is the account's turn.
func list[T any](ctx context.Context, l links, accountID int64, f func() (T, error)) (T, error) {
	return read(ctx, l.turns, l.turns.long, listReads, accountID, f)
}

// search is list for a read that compares each link with the words of a filter: another turn for every eight words.
func search[T any](
	ctx context.Context, l links, accountID int64, filter schema.LinkFilter, f func() (T, error),
) (T, error) {
	k := listReads
	k.price = (len(filter.Words) + 7) / 8
	return read(ctx, l.turns, l.turns.long, k, accountID, f)
}

// Links lets lists without a filter pass: each of their pages costs the same.
func (l links) Links(
	ctx context.Context, accountID int64, filter schema.LinkFilter, page int64,
) (found []schema.Link, total int64, err error) {
	if filter.IsZero() {
		return l.Database.Links(ctx, accountID, filter, page)
	}
	found, err = search(ctx, l, accountID, filter, func() (links []schema.Link, err error) {
		links, total, err = l.Database.Links(ctx, accountID, filter, page)
		return links, err
	})
	return found, total, err
}

func (l links) LinkIDs(
	ctx context.Context, accountID int64, filter schema.LinkFilter, limit int,
) ([]int64, error) {
	return search(ctx, l, accountID, filter, func() ([]int64, error) {
		return l.Database.LinkIDs(ctx, accountID, filter, limit)
	})
}

func (l links) LinksAfter(
	ctx context.Context, accountID int64, filter schema.LinkFilter, after schema.LinkPosition, limit int,
) ([]schema.Link, error) {
	return search(ctx, l, accountID, filter, func() ([]schema.Link, error) {
		return l.Database.LinksAfter(ctx, accountID, filter, after, limit)
	})
}

// NumberChanges writes the rows that ChangedLinks reads.
func (l links) NumberChanges(ctx context.Context, accountID int64, limit int) (int64, error) {
	return list(ctx, l, accountID, func() (int64, error) { return l.Database.NumberChanges(ctx, accountID, limit) })
}

func (l links) ChangedLinks(
	ctx context.Context, accountID int64, filter schema.LinkFilter, after schema.LinkChangePosition, limit int,
) (found []schema.Link, next schema.LinkChangePosition, err error) {
	found, err = search(ctx, l, accountID, filter, func() (links []schema.Link, err error) {
		links, next, err = l.Database.ChangedLinks(ctx, accountID, filter, after, limit)
		return links, err
	})
	return found, next, err
}

func (l links) LinksByID(ctx context.Context, accountID int64, ids []int64) ([]schema.Link, error) {
	if len(ids) <= shortRead {
		return l.Database.LinksByID(ctx, accountID, ids)
	}
	return list(ctx, l, accountID, func() ([]schema.Link, error) {
		return l.Database.LinksByID(ctx, accountID, ids)
	})
}

func (l links) TagCounts(
	ctx context.Context, accountID int64, after string, limit int,
) ([]schema.TagCount, error) {
	return list(ctx, l, accountID, func() ([]schema.TagCount, error) {
		return l.Database.TagCounts(ctx, accountID, after, limit)
	})
}

func (l links) TaggedLinks(
	ctx context.Context, accountID, ordinal int64, limit int,
) ([]schema.TaggedLink, error) {
	return list(ctx, l, accountID, func() ([]schema.TaggedLink, error) {
		return l.Database.TaggedLinks(ctx, accountID, ordinal, limit)
	})
}

// RenameTag reads all links of the account, too.
func (l links) RenameTag(ctx context.Context, accountID int64, from, to string, at time.Time) (int64, error) {
	return list(ctx, l, accountID, func() (int64, error) {
		return l.Database.RenameTag(ctx, accountID, from, to, at)
	})
}
