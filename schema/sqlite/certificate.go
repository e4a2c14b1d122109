package sqlite

import (
	"context"
	"time"

	"linkstream/schema"
)

const (
	certificateFile = `SELECT key, value, length(value), modified_at FROM certificate_files WHERE key = ?`
	// certificateFiles uses that "0" follows "/".
	certificateFiles       = `SELECT key, length(value), modified_at FROM certificate_files WHERE key >= ? AND key < ? ORDER BY key`
	allCertificateFiles    = `SELECT key, length(value), modified_at FROM certificate_files ORDER BY key`
	deleteCertificateFiles = `DELETE FROM certificate_files WHERE key = ? OR key >= ? AND key < ?`
	lockCertificate        = `
	INSERT INTO certificate_locks AS l (name, holder, expires_at) VALUES (?1, ?2, ?3 + ?4)
	ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
	WHERE l.holder = excluded.holder OR l.expires_at <= ?3`
	unlockCertificate = `DELETE FROM certificate_locks WHERE name = ? AND holder = ?`
	noteCertificate   = `
	INSERT INTO certificate_states AS s (host, expires_at, attempted_at, error) VALUES (?, ?, ?, ?)
	ON CONFLICT (host) DO UPDATE SET expires_at = coalesce(excluded.expires_at, s.expires_at),
		attempted_at = excluded.attempted_at, error = excluded.error`
	certificateState = `SELECT host, expires_at, attempted_at, error FROM certificate_states WHERE host = ?`
)

// PutCertificateFile implements schema.CertificateStore.
func (s *Store) PutCertificateFile(ctx context.Context, key string, value []byte) error {
	now := time.Now()
	_, err := s.db.write.ExecContext(ctx, `
		INSERT INTO certificate_files (key, value, modified_at) VALUES (?, ?, ?)
		ON CONFLICT (key) DO UPDATE SET value = excluded.value, modified_at = excluded.modified_at`, key, value, unixMillis{&now})
	return wrap(err, "store certificate file %q", key)
}

// CertificateFile implements schema.CertificateStore.
func (s *Store) CertificateFile(ctx context.Context, key string) (file schema.CertificateFile, err error) {
	err = s.db.queryRow(ctx, certificateFile, key).
		Scan(&file.Key, &file.Value, &file.Size, unixMillis{&file.ModifiedAt})
	return file, wrap(err, "read certificate file %q", key)
}

// CertificateFiles implements schema.CertificateStore.
func (s *Store) CertificateFiles(ctx context.Context, folder string) (files []schema.CertificateFile, err error) {
	query, args := allCertificateFiles, []any(nil)
	if folder != "" {
		query, args = certificateFiles, []any{folder + "/", folder + "0"}
	}
	rows, err := s.db.query(ctx, query, args...)
	err = forEachRow(rows, err, func() error {
		var file schema.CertificateFile
		err := rows.Scan(&file.Key, &file.Size, unixMillis{&file.ModifiedAt})
		files = append(files, file)
		return err
	})
	return files, wrap(err, "list certificate files below %q", folder)
}

// DeleteCertificateFiles implements schema.CertificateStore.
func (s *Store) DeleteCertificateFiles(ctx context.Context, key string) error {
	_, err := s.db.write.ExecContext(ctx, deleteCertificateFiles, key, key+"/", key+"0")
	return wrap(err, "delete certificate files %q", key)
}

// LockCertificate implements schema.CertificateStore.
func (s *Store) LockCertificate(ctx context.Context, name, holder string, lease time.Duration) (bool, error) {
	now := time.Now()
	result, err := s.db.write.ExecContext(ctx, lockCertificate, name, holder, unixMillis{&now}, lease.Milliseconds())
	if err != nil {
		return false, wrap(err, "lock certificate %q", name)
	}
	n, err := result.RowsAffected()
	return n == 1, wrap(err, "lock certificate %q", name)
}

// UnlockCertificate implements schema.CertificateStore.
func (s *Store) UnlockCertificate(ctx context.Context, name, holder string) error {
	_, err := s.db.write.ExecContext(ctx, unlockCertificate, name, holder)
	return wrap(err, "unlock certificate %q", name)
}

// NoteCertificate implements schema.CertificateStore.
func (s *Store) NoteCertificate(ctx context.Context, state schema.CertificateState) error {
	_, err := s.db.write.ExecContext(ctx, noteCertificate, state.Host, unixMillis{&state.ExpiresAt},
		unixMillis{&state.AttemptedAt}, state.Error)
	return wrap(err, "note certificate of %q", state.Host)
}

// CertificateState implements schema.CertificateStore.
func (s *Store) CertificateState(ctx context.Context, host string) (state schema.CertificateState, err error) {
	err = s.db.queryRow(ctx, certificateState, host).
		Scan(&state.Host, unixMillis{&state.ExpiresAt}, unixMillis{&state.AttemptedAt}, &state.Error)
	return state, wrap(err, "read certificate state of %q", host)
}
