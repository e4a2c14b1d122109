package transfer

import (
	"context"
	"crypto/rand"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"linkstream/schema"
)

// job is work on a file by this process.
type job struct {
	*Uploads
	upload schema.Upload
	holder string

	mu     sync.Mutex
	status Status
	lines  strings.Builder // errors that were not noted yet
	fresh  bool            // the next note replaces earlier errors
}

func (m *Uploads) newJob(upload schema.Upload, status Status) *job {
	return &job{Uploads: m, upload: upload, status: status, holder: rand.Text()}
}

func (j *job) encoded() string {
	text, err := json.Marshal(j.status)
	if err != nil {
		panic(err) // not reached: a status has texts and numbers
	}
	return string(text)
}

// note tells the store how far the job is, and renews its lease. It reports whether the job still has the file.
func (j *job) note(ctx context.Context, note schema.UploadNote) (bool, error) {
	j.mu.Lock()
	note.Status, note.Errors, note.Restart = j.encoded(), j.lines.String(), j.fresh
	j.lines.Reset()
	j.fresh = false
	j.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, noteTime)
	defer cancel()
	has, err := j.store.NoteUpload(ctx, j.upload.ID, j.holder, note)
	if err != nil { // the next note says it again
		j.mu.Lock()
		defer j.mu.Unlock()
		later := j.lines.String()
		j.lines.Reset()
		j.lines.WriteString(note.Errors + later)
		j.fresh = note.Restart
	}
	return has, err
}

// lastNote is a note that outlasts the request, or the process's will to go on.
func (j *job) lastNote(note schema.UploadNote) {
	if _, err := j.note(context.Background(), note); err != nil {
		j.log.Warn("state of an import not stored", "upload", j.upload.ID, "error", err)
	}
}

// run checks or imports the file.
func (j *job) run(ctx context.Context, phase Phase) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	j.mu.Lock()
	j.status.Phase, j.status.Report, j.status.Problem, j.status.Errors, j.fresh = phase, Report{}, "", 0, true
	j.mu.Unlock()
	noted := make(chan struct{})
	go func() {
		defer close(noted)
		j.noteUntilDone(ctx, cancel)
	}()
	report, err := j.work(ctx, phase)
	stopped := ctx.Err() != nil
	cancel()
	<-noted
	j.end(phase, report, err, stopped)
}

// work waits for its turn, and then checks or imports the file.
func (j *job) work(ctx context.Context, phase Phase) (Report, error) {
	select {
	case j.turn <- struct{}{}:
		defer func() { <-j.turn }()
	case <-ctx.Done():
		return Report{}, ctx.Err()
	}
	work := j.importer.Preview
	if phase == PhaseImporting {
		work = j.importer.Import
	}
	return work(ctx, j.upload.AccountID, &parts{ctx: ctx, store: j.store, id: j.upload.ID},
		Options{DomainID: j.status.DomainID, Progress: j.progress, OnError: j.addError})
}

// end notes what became of the job. A job that was stopped, or that a store has failed, stays in its phase: it was interrupted.
func (j *job) end(phase Phase, report Report, err error, stopped bool) {
	j.mu.Lock()
	j.status.Report = report
	var told *schema.Error
	done := false
	switch {
	case stopped:
	case err == nil && phase == PhaseImporting:
		j.status.Phase, done = PhaseDone, true
	case err == nil:
		j.status.Phase = PhaseReady
	case errors.As(err, &told) && told.Code == schema.CodeInvalid:
		j.status.Phase, j.status.Problem, done = PhaseFailed, told.Message, true
	default:
		j.log.Error("import interrupted", "upload", j.upload.ID, "account", j.upload.AccountID, "error", err)
	}
	j.mu.Unlock()
	j.lastNote(schema.UploadNote{Drop: done})
}

// noteUntilDone notes how far the job is, and cancels it when the file was given to somebody else, or when the store has not
// answered for the time of a lease.
func (j *job) noteUntilDone(ctx context.Context, cancel context.CancelFunc) {
	ticks := time.NewTicker(noteEvery)
	defer ticks.Stop()
	for last := time.Now(); ; {
		switch has, err := j.note(ctx, schema.UploadNote{Lease: lease}); {
		case err == nil && !has:
			cancel()
			return
		case err == nil:
			last = time.Now()
		case time.Since(last) > lease:
			cancel()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}

func (j *job) progress(p Progress) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.status.Report.Progress = p
}

// errorHeader is the first line of the errors.
const errorHeader = "line,column,problem\n"

// addError adds a line, unless there are too many.
func (j *job) addError(e RowError) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.status.Errors == MaxErrorLines {
		return
	}
	j.status.Errors++
	out := csv.NewWriter(&j.lines)
	_ = out.Write([]string{strconv.Itoa(e.Line), Guard(withoutNUL(e.Column)), Guard(withoutNUL(e.Reason))}) // a Builder takes everything
	out.Flush()
}

// withoutNUL returns text that stores can keep.
func withoutNUL(text string) string { return strings.ReplaceAll(text, "\x00", "") }

// parts reads a file part by part.
type parts struct {
	ctx   context.Context
	store schema.UploadStore
	id    string
	next  int
	rest  []byte
}

func (p *parts) Read(to []byte) (int, error) {
	if len(p.rest) == 0 {
		part, err := p.store.UploadPart(p.ctx, p.id, p.next)
		if schema.ErrorCode(err) == schema.CodeNotFound && p.next > 0 {
			return 0, io.EOF
		}
		if err != nil {
			return 0, err
		}
		p.rest = part
		p.next++
	}
	n := copy(to, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}
