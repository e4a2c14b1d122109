package sqlite

import (
	"context"
	"database/sql"
	"errors"
)

const (
	sharedValue    = `SELECT value FROM shared_values WHERE name = ?`
	addSharedValue = `INSERT INTO shared_values (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING`
	setSharedValue = `
	INSERT INTO shared_values (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`
	deleteSharedValues = `DELETE FROM shared_values WHERE name >= ? AND name < ?`
)

// SharedValue implements schema.SharedStore.
func (s *Store) SharedValue(ctx context.Context, name string, first []byte) (value []byte, err error) {
	err = s.db.queryRow(ctx, sharedValue, name).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) && len(first) > 0 {
		if _, err = s.db.write.ExecContext(ctx, addSharedValue, name, first); err == nil {
			err = s.db.queryRow(ctx, sharedValue, name).Scan(&value)
		}
	}
	return value, wrap(err, "read shared value %q", name)
}

// SetSharedValue implements schema.SharedStore.
func (s *Store) SetSharedValue(ctx context.Context, name string, value []byte) error {
	_, err := s.db.write.ExecContext(ctx, setSharedValue, name, value)
	return wrap(err, "store shared value %q", name)
}

// DeleteSharedValues implements schema.SharedStore.
func (s *Store) DeleteSharedValues(ctx context.Context, from, before string) error {
	_, err := s.db.write.ExecContext(ctx, deleteSharedValues, from, before)
	return wrap(err, "delete shared values before %q", before)
}
