package transfer

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"linkstream/schema"
)

// Limits of imports.
const (
	MaxFile       = 32 << 20 // bytes
	MaxErrorLines = 10_000   // lines of errors that are kept
	maxJobs       = 16       // files that a process receives, has in line or works on, with a part of each in memory
	maxWork       = 2        // files that it works on at a time
	maxName       = 100      // characters of a file's name
	kept          = 24 * time.Hour
	maxKept       = 1 << 30 // bytes of files that nobody works on, and of their errors; the oldest are dropped
)

const (
	lease     = 15 * time.Second
	noteEvery = time.Second
	noteTime  = 10 * time.Second // for a note to the store
)

// Phase is the present or last step of an import.
type Phase string

// The phases, in their order. A file that cannot be read is PhaseFailed.
const (
	PhaseReceiving Phase = "receiving"
	PhaseChecking  Phase = "checking"
	PhaseReady     Phase = "ready" // checked
	PhaseImporting Phase = "importing"
	PhaseDone      Phase = "done"
	PhaseFailed    Phase = "failed"
)

// Errors of Uploads for the client.
var (
	ErrBusy     = schema.ClientErrorf(schema.CodeUnavailable, "Other imports are under way. Please try again in a minute.")
	ErrWorking  = schema.ClientErrorf(schema.CodeConflict, "An import of your account is under way. Wait until it has ended.")
	ErrTooLarge = schema.ClientErrorf(schema.CodeInvalid, "The file is larger than 32 MiB. Import it in parts: each needs the first line.")
	ErrEmpty    = schema.ClientErrorf(schema.CodeInvalid, "Please choose a file that is not empty.")
	ErrGone     = schema.ClientErrorf(schema.CodeNotFound, "The file is not there any more. Please upload it again.")
)

// Status is how far the import of a file is.
type Status struct {
	Phase    Phase
	Report   Report
	Problem  string // why it has failed, for the owner of the file
	DomainID *int64 // of links whose host is not a domain of the account; nil: the default domain
	Size     int64  // bytes
	Errors   int64  // lines of errors that are kept
}

// Job is the file of an account.
type Job struct {
	schema.Upload
	Status
}

// Working reports whether somebody works on the file.
func (j Job) Working() bool { return j.Leased }

// Interrupted reports whether nobody works on the file any more, though it is not finished.
func (j Job) Interrupted() bool {
	return !j.Leased && (j.Phase == PhaseReceiving || j.Phase == PhaseChecking || j.Phase == PhaseImporting)
}

// Percent returns how much of the file is done.
func (j Job) Percent() int64 { return min(100, 100*j.Report.Bytes/max(1, j.Size)) }

// Uploads imports uploaded files of links in the background: one file of an account at a time.
//
// The file and the progress are in the link store, so that every process of the api can show them, and take over. The process that works
// on a file holds a lease, which it renews. If it is killed, the lease ends and the import counts as interrupted. Starting it again
// creates no link twice. Its methods may be called concurrently.
type Uploads struct {
	store    schema.UploadStore
	importer *Importer
	log      *slog.Logger
	free     chan struct{} // a semaphore of maxJobs
	turn     chan struct{} // a semaphore of maxWork

	mu      sync.Mutex
	ctx     context.Context // of jobs
	end     context.CancelFunc
	stopped bool
	jobs    sync.WaitGroup
}

// NewUploads returns Uploads that works on files in store.
func NewUploads(store schema.UploadStore, importer *Importer, log *slog.Logger) *Uploads {
	m := &Uploads{store: store, importer: importer, log: log, free: make(chan struct{}, maxJobs), turn: make(chan struct{}, maxWork)}
	m.ctx, m.end = context.WithCancel(context.Background())
	return m
}

// Run interrupts all jobs when ctx is done, and returns when they have ended.
func (m *Uploads) Run(ctx context.Context) {
	<-ctx.Done()
	m.mu.Lock()
	m.stopped = true
	m.mu.Unlock()
	m.end()
	m.jobs.Wait()
}

// Find returns the file of an account. CodeNotFound if it has none.
func (m *Uploads) Find(ctx context.Context, accountID int64) (Job, error) {
	upload, err := m.store.Upload(ctx, accountID)
	job := Job{Upload: upload}
	if err == nil {
		err = json.Unmarshal([]byte(upload.Status), &job.Status)
	}
	return job, err
}

// Errors returns the lines of errors of the last check or import, as CSV.
func (m *Uploads) Errors(ctx context.Context, accountID int64) (string, error) {
	upload, err := m.store.Upload(ctx, accountID)
	if err != nil {
		return "", err
	}
	lines, err := m.store.UploadErrors(ctx, upload.ID)
	return errorHeader + lines, err
}

// Receive stores a file and begins to check it. It calls alive after each part of it. ErrBusy, ErrWorking, ErrEmpty or ErrTooLarge; other
// errors are those of the store or of file.
func (m *Uploads) Receive(ctx context.Context, accountID int64, name string, domainID *int64, file io.Reader, alive func()) error {
	if !m.begin() {
		return ErrBusy
	}
	j := m.newJob(schema.Upload{ID: rand.Text(), AccountID: accountID, FileName: cleanName(name), CreatedAt: time.Now().UTC()},
		Status{Phase: PhaseReceiving, DomainID: domainID})
	part := make([]byte, schema.MaxUploadPart)
	n, err := readPart(file, part)
	if n == 0 && err == nil {
		err = ErrEmpty
	}
	if err == nil {
		err = m.create(ctx, j)
	}
	if err != nil {
		m.finish()
		return err
	}
	for number := 0; n > 0 && err == nil; number++ {
		alive()
		if j.status.Size += int64(n); j.status.Size > MaxFile {
			err = ErrTooLarge
			break
		}
		if err = m.addPart(ctx, j.upload.ID, number, part[:n]); err == nil {
			_, err = j.note(ctx, schema.UploadNote{Lease: lease})
		}
		if err == nil {
			n, err = readPart(file, part)
		}
	}
	if err != nil {
		j.status.Phase, j.status.Problem = PhaseFailed, "The file was not received completely."
		if errors.Is(err, ErrTooLarge) {
			j.status.Problem = ErrTooLarge.Message
		}
		j.lastNote(schema.UploadNote{Drop: true})
		m.finish()
		return err
	}
	m.start(j, PhaseChecking)
	return nil
}

// readPart reads until the part is full or the file ends. Unlike io.ReadFull it tells the end of a file from that of a connection,
// which is io.ErrUnexpectedEOF.
func readPart(file io.Reader, part []byte) (n int, err error) {
	for n < len(part) && err == nil {
		var more int
		more, err = file.Read(part[n:])
		n += more
	}
	if err == io.EOF {
		err = nil
	}
	return n, err
}

func (m *Uploads) addPart(ctx context.Context, id string, number int, part []byte) error {
	ctx, cancel := context.WithTimeout(ctx, noteTime)
	defer cancel()
	return m.store.AddUploadPart(ctx, id, number, part)
}

// create stores the upload of a job without parts.
func (m *Uploads) create(ctx context.Context, j *job) error {
	ctx, cancel := context.WithTimeout(ctx, noteTime)
	defer cancel()
	upload := j.upload
	upload.Status = j.encoded()
	err := m.store.CreateUpload(ctx, upload, j.holder, lease,
		schema.UploadsKept{Since: time.Now().Add(-kept), Parts: maxKept / schema.MaxUploadPart})
	if schema.ErrorCode(err) == schema.CodeConflict {
		return ErrWorking
	}
	return err
}

// Start begins to check or to import the file of an account, again if that was interrupted. ErrBusy, ErrWorking or ErrGone: also if
// the account's file is not the one with this ID.
func (m *Uploads) Start(ctx context.Context, accountID int64, id string, phase Phase) error {
	found, err := m.Find(ctx, accountID)
	switch {
	case schema.ErrorCode(err) == schema.CodeNotFound, err == nil && found.ID != id:
		return ErrGone
	case err != nil:
		return err
	case found.Working():
		return ErrWorking
	case found.Phase == PhaseReceiving, found.Phase == PhaseFailed, found.Phase == PhaseDone, phase == PhaseImporting && found.Phase == PhaseChecking:
		return ErrGone
	}
	if !m.begin() {
		return ErrBusy
	}
	j := m.newJob(found.Upload, found.Status)
	j.status.Phase = phase
	if has, err := j.note(ctx, schema.UploadNote{Lease: lease}); err != nil || !has {
		m.finish()
		if err == nil {
			err = ErrWorking
		}
		return err
	}
	m.start(j, phase)
	return nil
}

// begin reports whether there is room for a job. If so, finish must follow.
func (m *Uploads) begin() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped {
		return false
	}
	select {
	case m.free <- struct{}{}:
		m.jobs.Add(1)
		return true
	default:
		return false
	}
}

func (m *Uploads) finish() {
	<-m.free
	m.jobs.Done()
}

func (m *Uploads) start(j *job, phase Phase) {
	go func() {
		defer m.finish()
		j.run(m.ctx, phase)
	}()
}

// cleanName returns the name of a file as pages can show it.
func cleanName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, "\uFFFD"))
	if runes := []rune(name); len(runes) > maxName {
		name = string(runes[:maxName])
	}
	return name
}
