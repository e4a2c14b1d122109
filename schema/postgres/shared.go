package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

const (
	sharedValue    = `SELECT value FROM shared_values WHERE name = $1`
	addSharedValue = `INSERT INTO shared_values (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING`
	setSharedValue = `
	INSERT INTO shared_values (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`
	deleteSharedValues = `DELETE FROM shared_values WHERE name COLLATE "C" >= $1 AND name COLLATE "C" < $2`
)

// SharedValue implements schema.SharedStore.
func (s *Store) SharedValue(ctx context.Context, name string, first []byte) (value []byte, err error) {
	err = s.pool.QueryRow(ctx, sharedValue, name).Scan(&value)
	if errors.Is(err, pgx.ErrNoRows) && len(first) > 0 {
		if _, err = s.pool.Exec(ctx, addSharedValue, name, first); err == nil {
			err = s.pool.QueryRow(ctx, sharedValue, name).Scan(&value)
		}
	}
	return value, wrap(err, "read shared value %q", name)
}

// SetSharedValue implements schema.SharedStore.
func (s *Store) SetSharedValue(ctx context.Context, name string, value []byte) error {
	_, err := s.pool.Exec(ctx, setSharedValue, name, value)
	return wrap(err, "store shared value %q", name)
}

// DeleteSharedValues implements schema.SharedStore.
func (s *Store) DeleteSharedValues(ctx context.Context, from, before string) error {
	_, err := s.pool.Exec(ctx, deleteSharedValues, from, before)
	return wrap(err, "delete shared values before %q", before)
}
