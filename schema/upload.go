package schema

import (
	"context"
	"time"
)

// MaxUploadPart bounds a part of an uploaded file in bytes.
const MaxUploadPart = 1 << 20

// Upload is a file of links that an account imports. An account has one at most.
type Upload struct {
	ID        string // random, never used again
	AccountID int64
	FileName  string
	CreatedAt time.Time
	Status    string // how far the import is, in the words of who works on it
	Leased    bool   // by the store's clock, somebody works on it; set by the store when it reads
}

// UploadsKept bounds the uploads that a store keeps.
type UploadsKept struct {
	Since time.Time // when they were created
	Parts int       // of all together, and one more for each upload, with its errors; the newest are kept
}

// UploadNote is a report of progress by the process that works on an upload.
type UploadNote struct {
	Status string
	// Errors are lines that are added to the errors of previous notes; with Restart they replace them.
	Errors  string
	Restart bool
	Lease   time.Duration // the holder goes on for at most this time; 0: it has ended
	Drop    bool          // the file is not needed any more
}

// UploadStore keeps uploaded files, so that any process can work on them, and go on with them after another one was killed.
type UploadStore interface {
	// CreateUpload stores an upload without parts in place of the account's earlier one, and gives it to holder for the duration
	// lease by the store's clock. CodeConflict if somebody works on the earlier one. Of the uploads of all accounts that nobody works on,
	// it also deletes those that keep does not name.
	CreateUpload(ctx context.Context, upload Upload, holder string, lease time.Duration, keep UploadsKept) error
	// AddUploadPart adds part number 0, 1, 2, … to the file, of at most MaxUploadPart bytes. CodeNotFound if the upload is gone,
	// CodeConflict if it has this part.
	AddUploadPart(ctx context.Context, id string, number int, content []byte) error
	// UploadPart returns a part of the file. CodeNotFound after the last one.
	UploadPart(ctx context.Context, id string, number int) ([]byte, error)
	// Upload returns the account's upload. CodeNotFound if it has none.
	Upload(ctx context.Context, accountID int64) (Upload, error)
	// NoteUpload gives the upload to holder, unless another one has it whose lease has not ended, and stores the note. It reports
	// whether holder has the upload: false as well if the upload is gone.
	NoteUpload(ctx context.Context, id, holder string, note UploadNote) (bool, error)
	// UploadErrors returns the lines of all notes together. CodeNotFound if the upload is gone.
	UploadErrors(ctx context.Context, id string) (string, error)
}
