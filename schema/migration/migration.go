// Package migration brings the schema of a store up to date.
package migration

import (
	"context"
	"fmt"

	"github.com/pressly/goose/v3"

	"linkstream/schema"
)

// Up applies the migrations of provider that the database lacks. It refuses a database that a newer program migrated.
func Up(ctx context.Context, provider *goose.Provider) error {
	current, latest, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	if current > latest {
		return schema.Errorf(schema.CodeInternal,
			"the schema has version %d, made by a newer linkstream: this one knows %d", current, latest)
	}
	if current == latest {
		return nil
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate from version %d to %d: %w", current, latest, err)
	}
	return nil
}
