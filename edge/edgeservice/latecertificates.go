package edgeservice

import (
	"context"
	"time"

	"linkstream/schema"
)

// late calls f with the store of l once that is open.
func late[T any](l *LateLinks, f func(Links) (T, error)) (result T, err error) {
	store, err := l.store()
	if err != nil {
		return result, err
	}
	return f(store)
}

// lateError is late for methods without a result.
func lateError(l *LateLinks, f func(Links) error) error {
	_, err := late(l, func(store Links) (struct{}, error) { return struct{}{}, f(store) })
	return err
}

// PutCertificateFile implements Links.
func (l *LateLinks) PutCertificateFile(ctx context.Context, key string, value []byte) error {
	return lateError(l, func(s Links) error { return s.PutCertificateFile(ctx, key, value) })
}

// CertificateFile implements Links.
func (l *LateLinks) CertificateFile(ctx context.Context, key string) (schema.CertificateFile, error) {
	return late(l, func(s Links) (schema.CertificateFile, error) { return s.CertificateFile(ctx, key) })
}

// CertificateFiles implements Links.
func (l *LateLinks) CertificateFiles(ctx context.Context, folder string) ([]schema.CertificateFile, error) {
	return late(l, func(s Links) ([]schema.CertificateFile, error) { return s.CertificateFiles(ctx, folder) })
}

// DeleteCertificateFiles implements Links.
func (l *LateLinks) DeleteCertificateFiles(ctx context.Context, key string) error {
	return lateError(l, func(s Links) error { return s.DeleteCertificateFiles(ctx, key) })
}

// LockCertificate implements Links.
func (l *LateLinks) LockCertificate(ctx context.Context, name, holder string, lease time.Duration) (bool, error) {
	return late(l, func(s Links) (bool, error) { return s.LockCertificate(ctx, name, holder, lease) })
}

// UnlockCertificate implements Links.
func (l *LateLinks) UnlockCertificate(ctx context.Context, name, holder string) error {
	return lateError(l, func(s Links) error { return s.UnlockCertificate(ctx, name, holder) })
}

// NoteCertificate implements Links.
func (l *LateLinks) NoteCertificate(ctx context.Context, state schema.CertificateState) error {
	return lateError(l, func(s Links) error { return s.NoteCertificate(ctx, state) })
}

// CertificateState implements Links.
func (l *LateLinks) CertificateState(ctx context.Context, host string) (schema.CertificateState, error) {
	return late(l, func(s Links) (schema.CertificateState, error) { return s.CertificateState(ctx, host) })
}

// CountAttempts implements Links.
func (l *LateLinks) CountAttempts(ctx context.Context, attempts []schema.Attempts) ([]int64, error) {
	return late(l, func(s Links) ([]int64, error) { return s.CountAttempts(ctx, attempts) })
}
