package linkstore

import (
	"context"
	"time"

	"linkstream/schema"
)

const (
	putCertificateFile = `
	INSERT INTO certificate_files (key, value, modified_at) VALUES ($1, $2, $3)
	ON CONFLICT (key) DO UPDATE SET value = excluded.value, modified_at = excluded.modified_at`
	certificateFile = `SELECT key, octet_length(value), modified_at, value FROM certificate_files WHERE key = $1`
	// certificateFiles uses that "0" follows "/".
	certificateFiles = `
	SELECT key, octet_length(value), modified_at FROM certificate_files WHERE key >= $1 AND key < $2 ORDER BY key`
	allCertificateFiles    = `SELECT key, octet_length(value), modified_at FROM certificate_files ORDER BY key`
	deleteCertificateFiles = `DELETE FROM certificate_files WHERE key = $1 OR key >= $2 AND key < $3`
	lockCertificate        = `
	INSERT INTO certificate_locks AS l (name, holder, expires_at) VALUES ($1, $2, {now} + CAST($3 AS interval))
	ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
	WHERE l.holder = excluded.holder OR l.expires_at <= {now}`
	unlockCertificate = `DELETE FROM certificate_locks WHERE name = $1 AND holder = $2`
	noteCertificate   = `
	INSERT INTO certificate_states AS s (host, expires_at, attempted_at, error) VALUES ($1, $2, $3, $4)
	ON CONFLICT (host) DO UPDATE SET expires_at = coalesce(excluded.expires_at, s.expires_at),
		attempted_at = excluded.attempted_at, error = excluded.error`
	certificateState = `SELECT host, expires_at, attempted_at, error FROM certificate_states WHERE host = $1`
)

func certificateFields(f *schema.CertificateFile) []any { return []any{&f.Key, &f.Size, &f.ModifiedAt} }

// PutCertificateFile implements schema.CertificateStore.
func (s *Store) PutCertificateFile(ctx context.Context, key string, content []byte) error {
	_, err := exec(ctx, s.db, putCertificateFile, key, content, time.Now())
	return wrap(err, "store certificate file %q", key)
}

// CertificateFile implements schema.CertificateStore.
func (s *Store) CertificateFile(ctx context.Context, key string) (file schema.CertificateFile, err error) {
	err = get(ctx, s.db, append(certificateFields(&file), &file.Value), certificateFile, key)
	return file, wrap(err, "read certificate file %q", key)
}

// CertificateFiles implements schema.CertificateStore.
func (s *Store) CertificateFiles(ctx context.Context, folder string) ([]schema.CertificateFile, error) {
	query, args := allCertificateFiles, []any(nil)
	if folder != "" {
		query, args = certificateFiles, []any{folder + "/", folder + "0"}
	}
	files, err := list(ctx, s.db, certificateFields, query, args...)
	return files, wrap(err, "list certificate files below %q", folder)
}

// DeleteCertificateFiles implements schema.CertificateStore.
func (s *Store) DeleteCertificateFiles(ctx context.Context, key string) error {
	_, err := exec(ctx, s.db, deleteCertificateFiles, key, key+"/", key+"0")
	return wrap(err, "delete certificate files %q", key)
}

// LockCertificate implements schema.CertificateStore.
func (s *Store) LockCertificate(ctx context.Context, name, holder string, lease time.Duration) (bool, error) {
	locked, err := exec(ctx, s.db, lockCertificate, name, holder, lease)
	return locked == 1, wrap(err, "lock certificate %q", name)
}

// UnlockCertificate implements schema.CertificateStore.
func (s *Store) UnlockCertificate(ctx context.Context, name, holder string) error {
	_, err := exec(ctx, s.db, unlockCertificate, name, holder)
	return wrap(err, "unlock certificate %q", name)
}

// NoteCertificate implements schema.CertificateStore.
func (s *Store) NoteCertificate(ctx context.Context, state schema.CertificateState) error {
	_, err := exec(ctx, s.db, noteCertificate, state.Host, state.ExpiresAt, state.AttemptedAt, state.Error)
	return wrap(err, "note certificate of %q", state.Host)
}

// CertificateState implements schema.CertificateStore.
func (s *Store) CertificateState(ctx context.Context, host string) (state schema.CertificateState, err error) {
	into := []any{&state.Host, &state.ExpiresAt, &state.AttemptedAt, &state.Error}
	err = get(ctx, s.db, into, certificateState, host)
	return state, wrap(err, "read certificate state of %q", host)
}
