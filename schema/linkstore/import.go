package linkstore

import (
	"context"
	"time"

	"linkstream/schema"
)

const (
	deleteOldImports = `DELETE FROM imports WHERE updated_at < $1`
	putImport        = `
	INSERT INTO imports (account_id, id, status, errors, requested, updated_at) VALUES ($1, $2, $3, $4, $5, $6)
	ON CONFLICT (account_id) DO UPDATE SET id = excluded.id, status = excluded.status, errors = excluded.errors,
		requested = excluded.requested, updated_at = excluded.updated_at`
	updateImport  = `UPDATE imports SET status = $1, errors = $2, updated_at = $3 WHERE account_id = $4 AND id = $5`
	requestImport = `UPDATE imports SET requested = true, updated_at = $1 WHERE account_id = $2 AND id = $3`
	importStatus  = `SELECT account_id, id, status, requested, updated_at FROM imports WHERE account_id = $1`
	importErrors  = `SELECT errors FROM imports WHERE account_id = $1`
)

// PutImport implements schema.ImportStore.
func (s *Store) PutImport(ctx context.Context, i schema.ImportStatus, old time.Time) error {
	var b Batch
	b.exec(deleteOldImports, old)
	b.exec(putImport, i.AccountID, i.ID, i.Status, i.Errors, i.Requested, i.UpdatedAt)
	return wrap(s.db.Send(ctx, &b), "store import of account %d", i.AccountID)
}

// UpdateImport implements schema.ImportStore.
func (s *Store) UpdateImport(ctx context.Context, i schema.ImportStatus) error {
	err := execOne(ctx, s.db, updateImport, i.Status, i.Errors, i.UpdatedAt, i.AccountID, i.ID)
	return wrap(err, "update import of account %d", i.AccountID)
}

// RequestImport implements schema.ImportStore.
func (s *Store) RequestImport(ctx context.Context, accountID int64, id string, at time.Time) error {
	return wrap(execOne(ctx, s.db, requestImport, at, accountID, id), "request import of account %d", accountID)
}

// ImportStatus implements schema.ImportStore.
func (s *Store) ImportStatus(ctx context.Context, accountID int64) (i schema.ImportStatus, err error) {
	err = get(ctx, s.db, []any{&i.AccountID, &i.ID, &i.Status, &i.Requested, &i.UpdatedAt}, importStatus, accountID)
	return i, wrap(err, "read import of account %d", accountID)
}

// ImportErrors implements schema.ImportStore.
func (s *Store) ImportErrors(ctx context.Context, accountID int64) (lines string, err error) {
	err = get(ctx, s.db, []any{&lines}, importErrors, accountID)
	return lines, wrap(err, "read errors of the import of account %d", accountID)
}
