package links

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"linkstream/schema"
)

// Restore restores a link that its account has deleted within schema.TrashTTL, and returns it. domainID picks one as in
// OwnedLink. CodeNotFound if it is not in the trash; CodeInvalid if the hash has a new link.
func (s *Shortener) Restore(ctx context.Context, accountID int64, hash string, domainID *int64) (schema.Link, error) {
	now := currentTime()
	if id, external := externalID(hash); external {
		link, err := s.externalLink(ctx, accountID, id, domainID)
		if schema.ErrorCode(err) == schema.CodeNotFound {
			err = notInTrash()
		}
		if err != nil {
			return link, err
		}
		hash, domainID = link.Hash, &link.DomainID
	}
	if !schema.ValidHash(hash) {
		return schema.Link{}, notInTrash()
	}
	link, err := s.links.RestoreLink(ctx, accountID, hash, domainID, now.Add(-schema.TrashTTL), now)
	switch schema.ErrorCode(err) {
	case schema.CodeConflict:
		return link, InvalidFields(map[string][]string{
			"hash": {"You have a link with this hash, which takes the place of a deleted one."}})
	case schema.CodeNotFound:
		return link, notInTrash()
	}
	return link, err
}

func notInTrash() error {
	return schema.ClientErrorf(schema.CodeNotFound, "You have deleted no link with this hash within the last 30 days.")
}

// tidyPause is the time between two rounds of Tidy, and tidyChunk how many links one statement changes.
const (
	tidyPause = time.Hour
	tidyChunk = 1000
)

// Tidy removes links for good that were deleted longer than schema.TrashTTL ago, and lets searches find links that an
// older release has stored, at once and then every hour until ctx is done.
func (s *Shortener) Tidy(ctx context.Context, log *slog.Logger) {
	for timer := time.NewTimer(0); ; timer.Reset(tidyPause) {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		for what, chunk := range map[string]func() (int64, error){
			"make links known to searches": func() (int64, error) { return s.links.FoldLinks(ctx, tidyChunk) },
			"empty the trash": func() (int64, error) {
				return s.links.PurgeLinks(ctx, time.Now().Add(-schema.TrashTTL), tidyChunk)
			},
		} {
			changed, err := int64(tidyChunk), error(nil)
			for err == nil && changed == tidyChunk {
				changed, err = chunk()
			}
			if err != nil && ctx.Err() == nil {
				log.Warn("cannot "+what, "error", err)
			}
		}
	}
}

// MaxRestored bounds the links that were deleted together and can be restored together.
const MaxRestored = 10_000

// RestoreAll restores at a time the deleted links of an account that match filter, such as the links of one ChangeByID,
// schema.MaxLinkBatch per transaction. It begins no other transaction after until, and returns how many links are left
// then, or after an error.
func (s *Shortener) RestoreAll(
	ctx context.Context, accountID int64, filter schema.LinkFilter, at, until time.Time,
) (restored, left int64, err error) {
	after := currentTime().Add(-schema.TrashTTL)
	filter.DeletedAfter = after
	ids, err := s.links.LinkIDs(ctx, accountID, filter, MaxRestored)
	if err != nil {
		return 0, 0, err
	}
	left = int64(len(ids))
	for some := range slices.Chunk(ids, schema.MaxLinkBatch) {
		if restored > 0 && time.Now().After(until) {
			break
		}
		n, err := s.links.RestoreLinks(ctx, accountID, some, after, at)
		if err != nil {
			return restored, left, err
		}
		restored, left = restored+n, left-int64(len(some))
	}
	return restored, left, nil
}
