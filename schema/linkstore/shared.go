package linkstore

import (
	"context"
	"slices"

	"linkstream/schema"
)

const (
	sharedValue    = `SELECT value FROM shared_values WHERE name = $1`
	addSharedValue = `INSERT INTO shared_values (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING`
	setSharedValue = `
	INSERT INTO shared_values (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`
	sharedValues = `
	SELECT name, value FROM shared_values WHERE name{binary} >= $1 AND name{binary} < $2`
	deleteSharedValues = `DELETE FROM shared_values WHERE name{binary} >= $1 AND name{binary} < $2`
)

// SharedValue implements schema.ValueStore.
func (s *Store) SharedValue(ctx context.Context, name string, first []byte) (found []byte, err error) {
	err = get(ctx, s.db, value(&found), sharedValue, name)
	if schema.ErrorCode(err) == schema.CodeNotFound && len(first) > 0 {
		var b Batch // another process may have added one
		b.exec(addSharedValue, name, first)
		b.get(value(&found), sharedValue, name)
		err = s.db.Send(ctx, &b)
	}
	return found, wrap(err, "read shared value %q", name)
}

// SetSharedValue implements schema.ValueStore.
func (s *Store) SetSharedValue(ctx context.Context, name string, content []byte) error {
	_, err := exec(ctx, s.db, setSharedValue, name, content)
	return wrap(err, "store shared value %q", name)
}

// SharedValues implements schema.ValueStore.
func (s *Store) SharedValues(ctx context.Context, prefix string) (map[string][]byte, error) {
	last := len(prefix) - 1
	values, name, content := map[string][]byte{}, "", []byte(nil)
	rows, err := s.db.Query(ctx, statement(sharedValues, []any{prefix, prefix[:last] + string(prefix[last]+1)}))
	if err == nil {
		err = each(rows, []any{&name, &content}, func() error {
			values[name] = slices.Clone(content)
			return nil
		})
	}
	return values, wrap(err, "read shared values %q", prefix)
}

// DeleteSharedValues implements schema.ValueStore.
func (s *Store) DeleteSharedValues(ctx context.Context, from, before string) error {
	_, err := exec(ctx, s.db, deleteSharedValues, from, before)
	return wrap(err, "delete shared values before %q", before)
}
