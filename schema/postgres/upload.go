package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"linkstream/schema"
)

const (
	ended = `(leased_until IS NULL OR leased_until <= clock_timestamp())`
	// deleteOldUploads skips uploads that another call is deleting.
	deleteOldUploads = `
	DELETE FROM uploads WHERE id IN (SELECT id FROM uploads WHERE (created_at < $1 OR id IN (SELECT id FROM (
		SELECT id, sum(1 + (SELECT count(*) FROM upload_parts WHERE upload_id = u.id)) OVER (ORDER BY created_at DESC, id) AS parts
		FROM uploads AS u) AS newest WHERE parts > $2)) AND ` + ended + ` FOR UPDATE SKIP LOCKED)`
	deleteUpload = `DELETE FROM uploads WHERE account_id = $1 AND ` + ended
	createUpload = `
	INSERT INTO uploads (id, account_id, file_name, created_at, status, errors, holder, leased_until)
	VALUES ($1, $2, $3, $4, $5, '', $6, clock_timestamp() + $7)`
	addUploadPart = `INSERT INTO upload_parts (upload_id, number, content) SELECT id, $1, $2 FROM uploads WHERE id = $3`
	uploadPart    = `SELECT content FROM upload_parts WHERE upload_id = $1 AND number = $2`
	selectUpload  = `SELECT id, account_id, file_name, created_at, status, NOT ` + ended + ` FROM uploads WHERE account_id = $1`
	noteUpload    = `
	UPDATE uploads SET status = $1, errors = CASE WHEN $2 THEN '' ELSE errors END || $3, holder = $4,
		leased_until = CASE WHEN $5::interval > interval '0' THEN clock_timestamp() + $5::interval END
	WHERE id = $6 AND (holder = $4 OR ` + ended + `)`
	dropUpload   = `DELETE FROM upload_parts WHERE upload_id = $1`
	uploadErrors = `SELECT errors FROM uploads WHERE id = $1`
)

// CreateUpload implements schema.UploadStore.
func (s *Store) CreateUpload(ctx context.Context, upload schema.Upload, holder string, lease time.Duration, keep schema.UploadsKept) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, deleteOldUploads, keep.Since, keep.Parts); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, deleteUpload, upload.AccountID); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, createUpload, upload.ID, upload.AccountID, upload.FileName, upload.CreatedAt, upload.Status, holder, lease)
		return err
	})
	return wrap(err, "create upload of account %d", upload.AccountID)
}

// AddUploadPart implements schema.UploadStore.
func (s *Store) AddUploadPart(ctx context.Context, id string, number int, content []byte) error {
	err := oneRow(s.pool.Exec(ctx, addUploadPart, number, content, id))
	return wrap(err, "add part %d to upload %q", number, id)
}

// UploadPart implements schema.UploadStore.
func (s *Store) UploadPart(ctx context.Context, id string, number int) (content []byte, err error) {
	err = s.pool.QueryRow(ctx, uploadPart, id, number).Scan(&content)
	return content, wrap(err, "read part %d of upload %q", number, id)
}

// Upload implements schema.UploadStore.
func (s *Store) Upload(ctx context.Context, accountID int64) (u schema.Upload, err error) {
	err = s.pool.QueryRow(ctx, selectUpload, accountID).Scan(&u.ID, &u.AccountID, &u.FileName, &u.CreatedAt, &u.Status, &u.Leased)
	u.CreatedAt = u.CreatedAt.UTC()
	return u, wrap(err, "read upload of account %d", accountID)
}

// NoteUpload implements schema.UploadStore.
func (s *Store) NoteUpload(ctx context.Context, id, holder string, note schema.UploadNote) (bool, error) {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		err := oneRow(tx.Exec(ctx, noteUpload, note.Status, note.Restart, note.Errors, holder, note.Lease, id))
		if err == nil && note.Drop {
			_, err = tx.Exec(ctx, dropUpload, id)
		}
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, wrap(err, "note upload %q", id)
}

// UploadErrors implements schema.UploadStore.
func (s *Store) UploadErrors(ctx context.Context, id string) (lines string, err error) {
	err = s.pool.QueryRow(ctx, uploadErrors, id).Scan(&lines)
	return lines, wrap(err, "read errors of upload %q", id)
}
