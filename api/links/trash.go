package links

import (
	"context"
	"log/slog"
	"time"

	"linkstream/schema"
)

// Restore restores a link that its account has deleted within schema.TrashTTL, and returns it. domainID picks one as in
// OwnedLink. CodeNotFound if it is not in the trash; CodeInvalid if the hash has a new link.
func (s *Shortener) Restore(ctx context.Context, accountID int64, hash string, domainID *int64) (schema.Link, error) {
	if !schema.ValidHash(hash) {
		return schema.Link{}, notInTrash()
	}
	now := time.Now().UTC().Truncate(time.Second)
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

// purgePause is the time between two rounds of emptying the trash, and purgeChunk how many links one statement empties.
const (
	purgePause = time.Hour
	purgeChunk = 1000
)

// EmptyTrash removes links for good that were deleted longer than schema.TrashTTL ago, until ctx is done.
func (s *Shortener) EmptyTrash(ctx context.Context, log *slog.Logger) {
	for timer := time.NewTimer(0); ; timer.Reset(purgePause) {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		purged, err := int64(purgeChunk), error(nil)
		for err == nil && purged == purgeChunk {
			purged, err = s.links.PurgeLinks(ctx, time.Now().Add(-schema.TrashTTL), purgeChunk)
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("cannot empty the trash", "error", err)
		}
	}
}

// RestoreAll restores the links that an account has deleted at a time, such as by one ChangeByID. It returns the number
// of restored links, and the first error of another link.
func (s *Shortener) RestoreAll(ctx context.Context, accountID int64, at time.Time) (restored int, refused, err error) {
	var deleted []schema.Link
	for page := int64(1); ; page++ {
		links, _, err := s.links.Links(ctx, accountID, schema.LinkFilter{DeletedAfter: at.Add(-time.Second)}, page)
		if err != nil {
			return 0, nil, err
		}
		if len(links) == 0 {
			break
		}
		deleted = append(deleted, links...)
	}
	for _, link := range deleted {
		if !link.UpdatedAt.Equal(at) {
			continue
		}
		switch _, err := s.Restore(ctx, accountID, link.Hash, &link.DomainID); schema.ErrorCode(err) {
		case "":
			restored++
		case schema.CodeNotFound, schema.CodeInvalid:
			refused = err
		default:
			return restored, refused, err
		}
	}
	return restored, refused, nil
}
