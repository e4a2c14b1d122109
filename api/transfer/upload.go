package transfer

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"linkstream/schema"
	"linkstream/schema/turns"
)

// Limits of imports.
const (
	MaxFile       = 32 << 20 // bytes
	MaxErrorLines = 10_000   // lines of errors that are kept
	maxName       = 100      // characters of a file's name
	kept          = 24 * time.Hour
)

// Limits of a process.
const (
	maxJobs    = 16       // files that it receives or checks
	maxJobsOne = 2        // of one account: the second one can take the place of one whose sender is gone
	maxWork    = 2        // files that it checks or imports at a time
	maxWaiting = 64       // checked files that wait for their owners
	maxHeld    = 64 << 20 // bytes of all files, compressed
	maxWait    = time.Hour
)

const (
	noteEvery = time.Second
	noteTime  = 10 * time.Second
	lostAfter = 15 * time.Second // without a note
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
	ErrBusy    = schema.ClientErrorf(schema.CodeUnavailable, "Other imports are under way. Please try again in a minute.")
	ErrWorking = schema.ClientErrorf(schema.CodeConflict,
		"An import of your account is under way. Wait until it has ended.")
	ErrTooLarge = schema.ClientErrorf(schema.CodeInvalid,
		"The file is larger than 32 MiB. Import it in parts: each needs the first line.")
	ErrEmpty = schema.ClientErrorf(schema.CodeInvalid, "Please choose a file that is not empty.")
	ErrGone  = schema.ClientErrorf(schema.CodeNotFound, "The file is not there any more. Please upload it again.")
)

// Status is the progress of an import.
type Status struct {
	FileName string
	Phase    Phase
	Stopped  bool // the process gave it up in this phase
	Report   Report
	Problem  string // why it has failed, for the owner of the file
	Choice   Choice
	Size     int64 // bytes
}

// Choice is what the owner of a file says about it: see Options.
type Choice struct {
	DomainID *int64
	Source   string
	Map      map[string]string
	Ignore   []string
}

// Job is the last import of an account.
type Job struct {
	Status
	ID        string
	requested bool // the owner has asked to import the file
	lost      bool // the process has not noted anything for a while
}

func (j Job) started() bool {
	return j.Phase == PhaseReceiving || j.Phase == PhaseChecking || j.Phase == PhaseImporting ||
		j.Phase == PhaseReady && j.requested
}

// Working reports whether a process works on the file.
func (j Job) Working() bool { return j.started() && !j.Stopped && !j.lost }

// Interrupted reports whether the import ended before its time: it needs the file again.
func (j Job) Interrupted() bool { return j.Stopped || j.started() && j.lost }

// Percent returns how much of the file is done.
func (j Job) Percent() int64 { return min(100, 100*j.Report.Bytes/max(1, j.Size)) }

// Uploads imports uploaded files of links in the background: one file of an account at a time.
//
// The process that received a file has it in memory, checks it, and imports it when its owner asks for that. It notes
// its progress in the link store, where every process of the api can show it and ask for the import. If the process is
// stopped or killed, the import counts as interrupted, and its owner uploads the file again. That creates no link
// twice. Nothing depends on the clocks of processes but whether an import is shown as interrupted: two imports at a
// time create each link once. Methods may be called concurrently.
type Uploads struct {
	store    schema.ImportStore
	importer *Importer
	log      *slog.Logger
	free     *turns.Bound // files that are received or checked
	turns    *turns.Turns // of work

	mu      sync.Mutex
	ctx     context.Context // of jobs
	end     context.CancelFunc
	stopped bool
	jobs    sync.WaitGroup
	held    int64  // bytes of all files, compressed
	waiting []*job // for their owners, the first one for the longest time
}

// NewUploads returns Uploads that notes its progress in store.
func NewUploads(store schema.ImportStore, importer *Importer, log *slog.Logger) *Uploads {
	m := &Uploads{store: store, importer: importer, log: log,
		free: turns.NewBound(maxJobs, maxJobsOne), turns: turns.New(turns.Limits{Places: maxWork})}
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

// Find returns the last import of an account. CodeNotFound if it has none.
func (m *Uploads) Find(ctx context.Context, accountID int64) (Job, error) {
	found, err := m.store.ImportStatus(ctx, accountID)
	job := Job{ID: found.ID, requested: found.Requested, lost: time.Since(found.UpdatedAt) > lostAfter}
	if err == nil {
		err = json.Unmarshal([]byte(found.Status), &job.Status)
	}
	return job, err
}

// Errors returns the lines of errors of the last check or import, as CSV.
func (m *Uploads) Errors(ctx context.Context, accountID int64) (string, error) {
	lines, err := m.store.ImportErrors(ctx, accountID)
	return errorHeader + lines, err
}

// Receive reads a file and begins to check it. ErrBusy, ErrWorking, ErrEmpty or ErrTooLarge; other errors come from the
// store or from file.
func (m *Uploads) Receive(
	ctx context.Context, accountID int64, name string, choice Choice, file io.Reader,
) error {
	if err := m.begin(accountID); err != nil {
		return err
	}
	j := &job{Uploads: m, account: accountID, id: rand.Text(), evicted: make(chan struct{}),
		status: Status{FileName: cleanName(name), Phase: PhaseReceiving, Choice: choice}}
	if err := j.receive(ctx, file); err != nil {
		j.release()
		j.leaveFree()
		m.jobs.Done()
		return err
	}
	go j.run(m.ctx)
	return nil
}

// Start imports the file of an account, which was checked. ErrWorking, or ErrGone: also if the account's file is not
// the one with this ID.
func (m *Uploads) Start(ctx context.Context, accountID int64, id string) error {
	found, err := m.Find(ctx, accountID)
	switch {
	case schema.ErrorCode(err) == schema.CodeNotFound, err == nil && found.ID != id:
		return ErrGone
	case err != nil:
		return err
	case found.Working():
		return ErrWorking
	case found.Phase != PhaseReady || !found.Report.Imports() || found.Interrupted():
		return ErrGone
	}
	err = m.store.RequestImport(ctx, accountID, id, time.Now())
	if schema.ErrorCode(err) == schema.CodeNotFound {
		return ErrGone
	}
	return err
}

// begin gives a job of an account a place in free and in jobs. It returns ErrBusy or ErrWorking if it has none to give.
func (m *Uploads) begin(accountID int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped {
		return ErrBusy
	}
	switch m.free.Take(turns.Account(accountID), 1) {
	case turns.ErrEach:
		return ErrWorking
	case turns.ErrAll:
		return ErrBusy
	}
	m.jobs.Add(1)
	return nil
}

// hold reserves n bytes for the file of j, in place of files that have waited for their owners for the longest time. It
// reports whether there is room: a file that has more than would be left to others gets none (Choudhury and Hahne 1998,
// "Dynamic queue length thresholds"), so that a few accounts do not have all the room.
func (m *Uploads) hold(j *job, n int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for !m.hasRoom(j, n) && len(m.waiting) > 0 {
		m.evict()
	}
	if !m.hasRoom(j, n) {
		return false
	}
	m.held += n
	j.held += n
	return true
}

func (m *Uploads) hasRoom(j *job, n int64) bool { return j.held <= maxHeld-m.held-n }

// evict drops the file that has waited the longest. Its caller holds mu.
func (m *Uploads) evict() {
	first := m.waiting[0]
	m.waiting = slices.Delete(m.waiting, 0, 1)
	m.held -= first.held
	first.held, first.file = 0, nil
	close(first.evicted)
}

// await adds j to the files that wait for their owners.
func (m *Uploads) await(j *job) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.waiting) == maxWaiting {
		m.evict()
	}
	m.waiting = append(m.waiting, j)
}

// leave ends the waiting of j. It reports whether the file is still there.
func (m *Uploads) leave(j *job) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.Index(m.waiting, j)
	if i >= 0 {
		m.waiting = slices.Delete(m.waiting, i, i+1)
	}
	return i >= 0
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
