package transfer

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"linkstream/api/csvfile"
	"linkstream/schema"
	"linkstream/schema/turns"
)

// job is work on a file that this process received.
type job struct {
	*Uploads
	account int64
	id      string
	file    heldFile
	held    int64         // bytes of file, counted in Uploads.held
	evicted chan struct{} // closed when other files took the place of file

	mu     sync.Mutex
	status Status
	lines  strings.Builder // errors, as CSV
	errors int             // lines
}

// work is a method of Importer.
type work func(ctx context.Context, accountID int64, file io.Reader, opts Options) (Report, error)

// receive reads and keeps the file.
func (j *job) receive(ctx context.Context, file io.Reader) error {
	part := make([]byte, heldPart)
	n, err := readPart(file, part)
	if n == 0 && err == nil {
		err = ErrEmpty
	}
	if err == nil {
		err = j.create(ctx)
	}
	if err != nil {
		return err
	}
	for n > 0 && err == nil {
		err = j.keep(part[:n])
		if err == nil {
			err = j.note(ctx, "")
		}
		if err == nil {
			n, err = readPart(file, part)
		}
	}
	if err == nil {
		return nil
	}
	j.status.Phase, j.status.Problem = PhaseFailed, "The file was not received completely."
	if errors.Is(err, ErrTooLarge) {
		j.status.Problem = ErrTooLarge.Message
	}
	j.lastNote("")
	if schema.ErrorCode(err) == schema.CodeNotFound { // another file took its place
		return ErrWorking
	}
	return err
}

// keep adds a part to the file.
func (j *job) keep(part []byte) error {
	if j.status.Size += int64(len(part)); j.status.Size > MaxFile {
		return ErrTooLarge
	}
	if !j.hold(j, j.file.add(part)) {
		return ErrBusy
	}
	return nil
}

// create notes the job in place of the account's earlier one.
func (j *job) create(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, noteTime)
	defer cancel()
	switch found, err := j.Find(ctx, j.account); {
	case err != nil && schema.ErrorCode(err) != schema.CodeNotFound:
		return err
	case found.Working():
		return ErrWorking
	}
	return j.store.PutImport(ctx, j.encoded(""), time.Now().Add(-kept))
}

// release gives back the room of the file.
func (j *job) release() {
	j.Uploads.mu.Lock()
	defer j.Uploads.mu.Unlock()
	j.Uploads.held -= j.held
	j.held, j.file = 0, nil
}

// leaveFree gives back the place that begin has given.
func (j *job) leaveFree() { j.free.Leave(turns.Account(j.account), 1) }

func (j *job) encoded(lines string) schema.ImportStatus {
	j.mu.Lock()
	defer j.mu.Unlock()
	text, err := json.Marshal(j.status)
	if err != nil {
		panic(err) // not reached: a status has texts and numbers
	}
	return schema.ImportStatus{AccountID: j.account, ID: j.id, Status: string(text), Errors: lines, UpdatedAt: time.Now()}
}

// note stores the status. CodeNotFound if another file took the place of this one.
func (j *job) note(ctx context.Context, lines string) error {
	ctx, cancel := context.WithTimeout(ctx, noteTime)
	defer cancel()
	return j.store.UpdateImport(ctx, j.encoded(lines))
}

// lastNote is a note that outlasts the request, and the process's will to go on.
func (j *job) lastNote(lines string) {
	if err := j.note(context.Background(), lines); err != nil && schema.ErrorCode(err) != schema.CodeNotFound {
		j.log.Warn("state of an import not stored", "import", j.id, "error", err)
	}
}

// run checks the file, and imports it if its owner asks for that.
func (j *job) run(ctx context.Context) {
	defer j.jobs.Done()
	defer j.release()
	ready := j.do(ctx, PhaseChecking, j.importer.Preview)
	j.leaveFree()
	if ready && j.status.Report.Imports() && j.wait(ctx) {
		j.do(ctx, PhaseImporting, j.importer.Import)
	}
}

// do checks or imports the file, and notes the progress. It reports whether it succeeded.
func (j *job) do(ctx context.Context, phase Phase, work work) bool {
	j.mu.Lock()
	j.status.Phase, j.status.Report, j.errors = phase, Report{}, 0
	j.lines.Reset()
	j.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var noting sync.WaitGroup
	noting.Go(func() { j.noteUntilDone(ctx, cancel) })
	report, err := j.inTurn(ctx, work)
	stopped := ctx.Err() != nil
	cancel()
	noting.Wait()
	return j.end(phase, report, err, stopped)
}

// inTurn waits for a turn, and then does the work.
func (j *job) inTurn(ctx context.Context, work work) (Report, error) {
	account := turns.Account(j.account)
	if err := j.turns.Take(ctx, account, 1); err != nil {
		return Report{}, err
	}
	defer j.turns.Leave(account)
	choice := j.status.Choice
	return work(ctx, j.account, j.file.reader(), Options{DomainID: choice.DomainID, Source: choice.Source, Map: choice.Map,
		Ignore: choice.Ignore, Progress: j.progress, OnError: j.addError})
}

// end notes the end of a phase, and reports whether the work succeeded.
func (j *job) end(phase Phase, report Report, err error, stopped bool) (succeeded bool) {
	j.mu.Lock()
	j.status.Report = report
	var invalid *schema.Error
	switch {
	case stopped:
		j.status.Stopped = true
	case err == nil && phase == PhaseImporting:
		j.status.Phase, succeeded = PhaseDone, true
	case err == nil:
		j.status.Phase, succeeded = PhaseReady, true
	case errors.As(err, &invalid) && invalid.Code == schema.CodeInvalid:
		j.status.Phase, j.status.Problem = PhaseFailed, invalid.Message
	default:
		j.status.Stopped = true
		j.log.Error("import interrupted", "import", j.id, "account", j.account, "error", err)
	}
	j.mu.Unlock()
	j.lastNote(j.lines.String())
	return succeeded
}

// noteUntilDone notes the progress until ctx is done. It cancels the job if another file took the place of this one.
func (j *job) noteUntilDone(ctx context.Context, cancel context.CancelFunc) {
	ticks := time.NewTicker(noteEvery)
	defer ticks.Stop()
	for {
		if schema.ErrorCode(j.note(ctx, "")) == schema.CodeNotFound {
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

// wait waits until the owner asks to import the file. It reports whether the file is there to be imported.
func (j *job) wait(ctx context.Context) bool {
	j.await(j)
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	ticks := time.NewTicker(noteEvery)
	defer ticks.Stop()
	for waits := true; waits; {
		select {
		case <-ctx.Done():
			waits = false
		case <-j.evicted:
			waits = false
		case <-ticks.C:
			found, err := j.store.ImportStatus(ctx, j.account)
			switch {
			case schema.ErrorCode(err) == schema.CodeNotFound, err == nil && found.ID != j.id:
				j.leave(j)
				return false
			case err == nil && found.Requested && j.leave(j):
				return true
			}
		}
	}
	j.leave(j)
	j.mu.Lock()
	j.status.Stopped = true
	j.mu.Unlock()
	j.lastNote(j.lines.String())
	return false
}

func (j *job) progress(p Progress) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.status.Report.Progress = p
}

// errorHeader is the first line of the errors.
const errorHeader = csvfile.BOM + "line,column,problem\n"

// addError adds a line, unless there are too many.
func (j *job) addError(e RowError) {
	if j.errors == MaxErrorLines {
		return
	}
	j.errors++
	out := csv.NewWriter(&j.lines)
	_ = out.Write([]string{strconv.Itoa(e.Line), csvfile.Guard(withoutNUL(e.Column)),
		csvfile.Guard(withoutNUL(e.Reason))}) // never fails
	out.Flush()
}

// withoutNUL returns text that stores can keep.
func withoutNUL(text string) string { return strings.ReplaceAll(text, "\x00", "") }
