package sqlite

import (
	"context"
	"encoding/json"
)

// ids returns the IDs that a query of some IDs, which are its first argument as JSON, selects.
func (s *Store) ids(ctx context.Context, query string, of []int64, args ...any) (found []int64, err error) {
	list, err := json.Marshal(of)
	if err != nil {
		return nil, err
	}
	rows, err := s.db.query(ctx, query, append([]any{string(list)}, args...)...)
	err = forEachRow(rows, err, func() error {
		var id int64
		err := rows.Scan(&id)
		found = append(found, id)
		return err
	})
	return found, err
}
