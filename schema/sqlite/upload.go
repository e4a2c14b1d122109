package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"linkstream/schema"
)

const (
	deleteOldUploads = `
	DELETE FROM uploads WHERE coalesce(leased_until, 0) <= ? AND (created_at < ? OR id IN (SELECT id FROM (
		SELECT id, sum(1 + (SELECT count(*) FROM upload_parts WHERE upload_id = u.id)) OVER (ORDER BY created_at DESC, id) AS parts
		FROM uploads AS u) WHERE parts > ?))`
	deleteUpload = `DELETE FROM uploads WHERE account_id = ? AND coalesce(leased_until, 0) <= ?`
	createUpload = `
	INSERT INTO uploads (id, account_id, file_name, created_at, status, errors, holder, leased_until) VALUES (?, ?, ?, ?, ?, '', ?, ?)`
	addUploadPart = `INSERT INTO upload_parts (upload_id, number, content) SELECT id, ?, ? FROM uploads WHERE id = ?`
	uploadPart    = `SELECT content FROM upload_parts WHERE upload_id = ? AND number = ?`
	selectUpload  = `
	SELECT id, account_id, file_name, created_at, status, coalesce(leased_until, 0) > ? FROM uploads WHERE account_id = ?`
	noteUpload = `
	UPDATE uploads SET status = ?1, errors = iif(?2, '', errors) || ?3, holder = ?4, leased_until = iif(?5 > 0, ?6 + ?5, NULL)
	WHERE id = ?7 AND (holder = ?4 OR coalesce(leased_until, 0) <= ?6)`
	dropUpload   = `DELETE FROM upload_parts WHERE upload_id = ?`
	uploadErrors = `SELECT errors FROM uploads WHERE id = ?`
)

// CreateUpload implements schema.UploadStore.
func (s *Store) CreateUpload(ctx context.Context, upload schema.Upload, holder string, lease time.Duration, keep schema.UploadsKept) error {
	now := time.Now()
	until := now.Add(lease)
	err := s.db.update(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, deleteOldUploads, unixMillis{&now}, unixMillis{&keep.Since}, keep.Parts); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, deleteUpload, upload.AccountID, unixMillis{&now}); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, createUpload, upload.ID, upload.AccountID, upload.FileName, unixMillis{&upload.CreatedAt}, upload.Status,
			holder, unixMillis{&until})
		return err
	})
	return wrap(err, "create upload of account %d", upload.AccountID)
}

// AddUploadPart implements schema.UploadStore.
func (s *Store) AddUploadPart(ctx context.Context, id string, number int, content []byte) error {
	err := oneRow(s.db.write.ExecContext(ctx, addUploadPart, number, content, id))
	return wrap(err, "add part %d to upload %q", number, id)
}

// UploadPart implements schema.UploadStore.
func (s *Store) UploadPart(ctx context.Context, id string, number int) (content []byte, err error) {
	err = s.db.queryRow(ctx, uploadPart, id, number).Scan(&content)
	return content, wrap(err, "read part %d of upload %q", number, id)
}

// Upload implements schema.UploadStore.
func (s *Store) Upload(ctx context.Context, accountID int64) (u schema.Upload, err error) {
	now := time.Now()
	err = s.db.queryRow(ctx, selectUpload, unixMillis{&now}, accountID).
		Scan(&u.ID, &u.AccountID, &u.FileName, unixMillis{&u.CreatedAt}, &u.Status, &u.Leased)
	return u, wrap(err, "read upload of account %d", accountID)
}

// NoteUpload implements schema.UploadStore.
func (s *Store) NoteUpload(ctx context.Context, id, holder string, note schema.UploadNote) (bool, error) {
	now := time.Now()
	err := s.db.update(ctx, func(tx *sql.Tx) error {
		err := oneRow(tx.ExecContext(ctx, noteUpload, note.Status, note.Restart, note.Errors, holder, note.Lease.Milliseconds(), unixMillis{&now}, id))
		if err == nil && note.Drop {
			_, err = tx.ExecContext(ctx, dropUpload, id)
		}
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, wrap(err, "note upload %q", id)
}

// UploadErrors implements schema.UploadStore.
func (s *Store) UploadErrors(ctx context.Context, id string) (lines string, err error) {
	err = s.db.queryRow(ctx, uploadErrors, id).Scan(&lines)
	return lines, wrap(err, "read errors of upload %q", id)
}
