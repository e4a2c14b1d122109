package storetest

import (
	"context"
	"time"

	"linkstream/schema"
)

func (f FaultyDatabase) CreateShare(ctx context.Context, share *schema.Share) error {
	return do(ctx, f.Fault, "CreateShare", func() error { return f.Database.CreateShare(ctx, share) })
}

func (f FaultyDatabase) Shares(ctx context.Context, accountID int64) ([]schema.Share, error) {
	return one(ctx, f.Fault, "Shares", func() ([]schema.Share, error) { return f.Database.Shares(ctx, accountID) })
}

func (f FaultyDatabase) Share(ctx context.Context, accountID, id int64) (schema.Share, error) {
	return one(ctx, f.Fault, "Share", func() (schema.Share, error) { return f.Database.Share(ctx, accountID, id) })
}

func (f FaultyDatabase) ShareByDigest(ctx context.Context, digest [32]byte, now time.Time) (schema.Share, schema.Account, error) {
	return two(ctx, f.Fault, "ShareByDigest", func() (schema.Share, schema.Account, error) { return f.Database.ShareByDigest(ctx, digest, now) })
}

func (f FaultyDatabase) DeleteShare(ctx context.Context, accountID, id int64) error {
	return do(ctx, f.Fault, "DeleteShare", func() error { return f.Database.DeleteShare(ctx, accountID, id) })
}
