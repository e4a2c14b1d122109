package schema

import (
	"context"
	"time"
)

// ImportStatus is the state of the last import of links of an account. The process that received the file works on it.
type ImportStatus struct {
	AccountID int64
	ID        string // random, never used again
	Status    string // JSON of the process that works on the file
	Errors    string // lines of CSV; see ImportErrors
	Requested bool   // the owner has asked to import the file, which was checked
	UpdatedAt time.Time
}

// ImportStore keeps one ImportStatus per account, so that every process can show it.
type ImportStore interface {
	// PutImport stores a status in place of the account's earlier one. It also deletes those that were last updated before
	// old.
	PutImport(ctx context.Context, status ImportStatus, old time.Time) error
	// UpdateImport sets Status, Errors and UpdatedAt. CodeNotFound if the account has no status with this ID.
	UpdateImport(ctx context.Context, status ImportStatus) error
	// RequestImport sets Requested, and UpdatedAt to at. CodeNotFound if the account has no status with this ID.
	RequestImport(ctx context.Context, accountID int64, id string, at time.Time) error
	// ImportStatus returns the status of the account's last import, without Errors. CodeNotFound if it has none.
	ImportStatus(ctx context.Context, accountID int64) (ImportStatus, error)
	// ImportErrors returns the Errors of the account's last import. CodeNotFound if it has none.
	ImportErrors(ctx context.Context, accountID int64) (string, error)
}
