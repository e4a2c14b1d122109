package certificate

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"linkstream/schema"
)

const (
	lockLease = 30 * time.Second // a process that is killed holds a lock no longer
	lockRenew = 10 * time.Second
	lockPoll  = 500 * time.Millisecond // between two attempts to get a lock

	storageFormat = 1 // the first byte of a stored value
	storageInfo   = "linkstream certificates 1"
)

// storage keeps certmagic's files in the link store, which all edges share. It encrypts them by AES-256-GCM:
// whoever reads the database, or a backup of it, gets no key. The file's key is authenticated with its value, so
// values cannot change places.
type storage struct {
	store schema.CertificateStore
	seal  cipher.AEAD
	log   *slog.Logger

	mu      sync.Mutex
	holders map[string]*holder // of locks, by name
}

var (
	_ certmagic.Storage   = (*storage)(nil)
	_ certmagic.TryLocker = (*storage)(nil)
)

type holder struct {
	id   string
	stop func()
}

// String keeps what a storage holds out of logs.
func (s *storage) String() string { return "the link store" }

// newStorage returns a storage whose encryption key is derived from secret (HKDF, RFC 5869).
func newStorage(store schema.CertificateStore, secret string, log *slog.Logger) (*storage, error) {
	key, err := hkdf.Key(sha256.New, []byte(secret), nil, storageInfo, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	seal, err := cipher.NewGCMWithRandomNonce(block)
	return &storage{store: store, seal: seal, log: log, holders: map[string]*holder{}}, err
}

// Store implements certmagic.Storage.
func (s *storage) Store(ctx context.Context, key string, value []byte) error {
	sealed := s.seal.Seal([]byte{storageFormat}, nil, value, []byte(key))
	return s.store.PutCertificateFile(ctx, key, sealed)
}

// Load implements certmagic.Storage. A file that another secret has encrypted does not exist: then a new
// certificate takes its place.
func (s *storage) Load(ctx context.Context, key string) ([]byte, error) {
	file, err := s.store.CertificateFile(ctx, key)
	if err != nil {
		return nil, notExist(err)
	}
	if len(file.Value) > 0 && file.Value[0] == storageFormat {
		if value, err := s.seal.Open(nil, nil, file.Value[1:], []byte(key)); err == nil {
			return value, nil
		}
	}
	s.log.Warn("a certificate file cannot be decrypted: -edge.acme-key is not what it was", "file", key)
	return nil, fmt.Errorf("decrypt certificate file %q: %w", key, fs.ErrNotExist)
}

// Delete implements certmagic.Storage.
func (s *storage) Delete(ctx context.Context, key string) error {
	return s.store.DeleteCertificateFiles(ctx, key)
}

// Exists implements certmagic.Storage.
func (s *storage) Exists(ctx context.Context, key string) bool {
	if _, err := s.Load(ctx, key); err == nil {
		return true
	}
	files, err := s.store.CertificateFiles(ctx, key)
	return err == nil && len(files) > 0
}

// List implements certmagic.Storage.
func (s *storage) List(ctx context.Context, folder string, recursive bool) (keys []string, err error) {
	files, err := s.store.CertificateFiles(ctx, folder)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("list %q: %w", folder, fs.ErrNotExist)
	}
	last := ""
	for _, file := range files {
		key := file.Key
		if !recursive {
			name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(key, folder), "/"), "/")
			key = path.Join(folder, name)
		}
		if key != last {
			keys, last = append(keys, key), key
		}
	}
	return keys, nil
}

// Stat implements certmagic.Storage.
func (s *storage) Stat(ctx context.Context, key string) (certmagic.KeyInfo, error) {
	file, err := s.store.CertificateFile(ctx, key)
	if err == nil {
		return certmagic.KeyInfo{Key: key, Modified: file.ModifiedAt, Size: file.Size, IsTerminal: true}, nil
	}
	if schema.ErrorCode(err) != schema.CodeNotFound {
		return certmagic.KeyInfo{}, err
	}
	below, err := s.store.CertificateFiles(ctx, key)
	if err != nil {
		return certmagic.KeyInfo{}, err
	}
	if len(below) == 0 {
		return certmagic.KeyInfo{}, fmt.Errorf("stat %q: %w", key, fs.ErrNotExist)
	}
	return certmagic.KeyInfo{Key: key}, nil
}

// Lock implements certmagic.Storage. It waits until nobody has the lock, and keeps its lease until Unlock.
func (s *storage) Lock(ctx context.Context, name string) error {
	for {
		locked, err := s.TryLock(ctx, name)
		if locked || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockPoll):
		}
	}
}

// TryLock implements certmagic.TryLocker.
func (s *storage) TryLock(ctx context.Context, name string) (bool, error) {
	id := newHolder()
	locked, err := s.store.LockCertificate(ctx, name, id, lockLease)
	if err != nil || !locked {
		return false, err
	}
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.mu.Lock()
	s.holders[name] = &holder{id, stop}
	s.mu.Unlock()
	go s.keepLease(renewing, name, id)
	return true, nil
}

// keepLease renews the lease of a lock until ctx is done.
func (s *storage) keepLease(ctx context.Context, name, id string) {
	ticker := time.NewTicker(lockRenew)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if locked, err := s.store.LockCertificate(ctx, name, id, lockLease); ctx.Err() == nil && (err != nil || !locked) {
			s.log.Warn("cannot renew the lock of a certificate", "lock", name, "lost", err == nil, "error", err)
		}
	}
}

// Unlock implements certmagic.Storage. It releases the lock even if ctx is done.
func (s *storage) Unlock(ctx context.Context, name string) error {
	s.mu.Lock()
	h := s.holders[name]
	delete(s.holders, name)
	s.mu.Unlock()
	if h == nil {
		return fmt.Errorf("unlock %q: %w", name, errNotLocked)
	}
	h.stop()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockLease)
	defer cancel()
	return s.store.UnlockCertificate(ctx, name, h.id)
}

var errNotLocked = errors.New("this process does not have the lock")

func newHolder() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails, see crypto/rand
	return hex.EncodeToString(id[:])
}

// notExist turns CodeNotFound into the error that certmagic expects.
func notExist(err error) error {
	if schema.ErrorCode(err) == schema.CodeNotFound {
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return err
}
