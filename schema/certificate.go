package schema

import (
	"context"
	"time"
)

// MaxCertificateErrorLen bounds CertificateState.Error in bytes.
const MaxCertificateErrorLen = 1024

// CertificateState is the state of a host's certificate, as the edges know it.
type CertificateState struct {
	Host        string
	ExpiresAt   time.Time // of the newest certificate; zero if there never was one
	AttemptedAt time.Time // the last attempt to get one
	Error       string    // why that attempt failed, in words for the host's owner; "" if it succeeded
}

// CertificateFile is a file of the edges' certificates: a certificate, a key, an account or a challenge of an
// authority. The edges encrypt its value.
type CertificateFile struct {
	Key        string // a path: parts separated by slashes
	Value      []byte
	Size       int64 // of Value
	ModifiedAt time.Time
}

// CertificateStore keeps the certificates that all edges share.
type CertificateStore interface {
	// PutCertificateFile stores a file, in place of one with the same key.
	PutCertificateFile(ctx context.Context, key string, value []byte) error
	// CertificateFile returns a file. CodeNotFound without such a file.
	CertificateFile(ctx context.Context, key string) (CertificateFile, error)
	// CertificateFiles returns all files below a folder, that is those whose keys begin with folder and a slash, without
	// their values, in order of their keys. "" is the folder of all files.
	CertificateFiles(ctx context.Context, folder string) ([]CertificateFile, error)
	// DeleteCertificateFiles deletes the file with this key and all files below the folder of that name. It also succeeds
	// without such files.
	DeleteCertificateFiles(ctx context.Context, key string) error

	// LockCertificate gives the lock of a name to holder for the duration lease by the store's clock, unless another one
	// has it. It renews the lease of a holder who has it already. It reports whether holder has the lock now.
	LockCertificate(ctx context.Context, name, holder string, lease time.Duration) (bool, error)
	// UnlockCertificate ends the lease of a holder. It succeeds if another one has the lock, or nobody.
	UnlockCertificate(ctx context.Context, name, holder string) error

	// NoteCertificate stores the state of a host's certificate. A zero ExpiresAt leaves the stored one.
	NoteCertificate(ctx context.Context, state CertificateState) error
	// CertificateState returns the state of a host's certificate. CodeNotFound if none was noted.
	CertificateState(ctx context.Context, host string) (CertificateState, error)
}
