package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"linkstream/api/links"
	"linkstream/api/transfer"
	"linkstream/schema"
	"linkstream/schema/blocklist"
	"linkstream/schema/linkstore"
	"linkstream/schema/service"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

type uploads struct {
	t       *testing.T
	store   *linkstore.Store
	account int64
}

func newUploads(t *testing.T) *uploads {
	t.Helper()
	store := sqlitetest.New(t)
	account := schema.Account{Email: "a@example.org", CreatedAt: time.Now()}
	testkit.Must(t, store.CreateAccount(t.Context(), &account))
	return &uploads{t, store, account.ID}
}

// process runs the Uploads of a process until stop, and at most until the test ends.
func (f *uploads) process(fault storetest.Fault) (m *transfer.Uploads, stop func()) {
	f.t.Helper()
	log := slog.New(slog.NewTextHandler(f.t.Output(), nil))
	list, err := blocklist.Open("", log)
	testkit.Must(f.t, err)
	db := storetest.Faulty(f.store, fault)
	shortener := links.New(schema.MustParseBaseURL("https://sho.rt"), db, db, list)
	m = transfer.NewUploads(db, transfer.NewImporter(shortener, db, db, sqlitetest.NewClickStore(f.t)), log)
	stop = service.RunInBackground(context.Background(), m.Run)
	f.t.Cleanup(stop)
	return m, stop
}

func (f *uploads) receive(m *transfer.Uploads, file io.Reader) error {
	return m.Receive(f.t.Context(), f.account, "links.csv", transfer.Choice{}, file)
}

func (f *uploads) wait(m *transfer.Uploads, phase transfer.Phase) (job transfer.Job) {
	f.t.Helper()
	testkit.Eventually(f.t, "the file is "+string(phase), func() bool {
		var err error
		job, err = m.Find(f.t.Context(), f.account)
		return err == nil && job.Phase == phase && !job.Working()
	})
	return job
}

// twoParts is the number of rows that two parts of a file have.
const twoParts = 8000

func rows(n int) string {
	var file strings.Builder
	file.WriteString("alias,long_url\n")
	query := strings.Repeat("x", 110)
	for i := range n {
		fmt.Fprintf(&file, "row-%d,https://example.org/%d?%s\n", i, i, query)
	}
	return file.String()
}

// imports imports a file of rows and returns the result.
func (f *uploads) imports(m *transfer.Uploads, file string) transfer.Job {
	f.t.Helper()
	testkit.Must(f.t, f.receive(m, strings.NewReader(file)))
	job := f.wait(m, transfer.PhaseReady)
	testkit.Must(f.t, m.Start(f.t.Context(), f.account, job.ID))
	return f.wait(m, transfer.PhaseDone)
}

func TestUpload(t *testing.T) {
	f := newUploads(t)
	m, _ := f.process(nil)
	other, _ := f.process(nil)
	testkit.Must(t, f.receive(m, strings.NewReader(rows(twoParts))))
	job := f.wait(m, transfer.PhaseReady)
	testkit.Equal(t, "to create", job.Report.Created, twoParts)
	if err := m.Start(t.Context(), f.account, "another"); !errors.Is(err, transfer.ErrGone) {
		t.Errorf("another file is imported: %v", err)
	}
	testkit.Must(t, other.Start(t.Context(), f.account, job.ID)) // the request came to another process
	if job, err := other.Find(t.Context(), f.account); err != nil || !job.Working() {
		t.Errorf("%+v, %v", job, err)
	}
	job = f.wait(m, transfer.PhaseDone)
	testkit.Equal(t, "created", job.Report.Created, twoParts)
	testkit.Equal(t, "percent", job.Percent(), 100)
	if err := m.Start(t.Context(), f.account, job.ID); !errors.Is(err, transfer.ErrGone) {
		t.Errorf("it is imported again: %v", err)
	}
}

// TestStoppedProcess stops a process in mid-import. Uploaded again to another process, the file makes each link once.
func TestStoppedProcess(t *testing.T) {
	f := newUploads(t)
	stopping := make(chan struct{}, 1)
	calls := 0
	first, stop := f.process(func(ctx context.Context, method string) error {
		if method != "LinksByHash" {
			return nil
		}
		if calls++; calls == 5 { // the check has made three calls
			stopping <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	})
	second, _ := f.process(nil)
	testkit.Must(t, f.receive(first, strings.NewReader(rows(2500))))
	job := f.wait(first, transfer.PhaseReady)
	testkit.Must(t, first.Start(t.Context(), f.account, job.ID))
	<-stopping
	if err := second.Start(t.Context(), f.account, job.ID); !errors.Is(err, transfer.ErrWorking) {
		t.Errorf("the file is imported twice at a time: %v", err)
	}
	if err := f.receive(second, strings.NewReader(rows(1))); !errors.Is(err, transfer.ErrWorking) {
		t.Errorf("the file is replaced while it is imported: %v", err)
	}
	stop()
	job, err := second.Find(t.Context(), f.account)
	testkit.Must(t, err)
	if !job.Interrupted() || job.Phase != transfer.PhaseImporting || job.Report.Created != 1000 {
		t.Fatalf("%s, interrupted %t, created %d", job.Phase, job.Interrupted(), job.Report.Created)
	}
	if err := f.receive(first, strings.NewReader(rows(1))); !errors.Is(err, transfer.ErrBusy) {
		t.Errorf("a process that has stopped takes a file: %v", err)
	}
	job = f.imports(second, rows(2500))
	testkit.Equal(t, "created and present", []int64{job.Report.Created, job.Report.Present}, []int64{1500, 1000})
	_, total, err := f.store.Links(t.Context(), f.account, schema.LinkFilter{}, 1)
	testkit.Must(t, err)
	testkit.Equal(t, "links", total, 2500)
}

// TestWaitingFiles has checked files whose import their owners do not start.
func TestWaitingFiles(t *testing.T) {
	f := newUploads(t)
	m, stop := f.process(nil)
	interrupted := func(job transfer.Job) {
		t.Helper()
		testkit.Eventually(t, "the file is dropped", func() bool {
			found, err := m.Find(t.Context(), f.account)
			return err == nil && found.ID == job.ID && found.Interrupted()
		})
		if err := m.Start(t.Context(), f.account, job.ID); !errors.Is(err, transfer.ErrGone) {
			t.Errorf("a dropped file is imported: %v", err)
		}
	}
	testkit.Must(t, f.receive(m, strings.NewReader(rows(1))))
	first := f.wait(m, transfer.PhaseReady)
	testkit.Must(t, f.receive(m, strings.NewReader(rows(2))))
	second := f.wait(m, transfer.PhaseReady)
	if err := m.Start(t.Context(), f.account, first.ID); !errors.Is(err, transfer.ErrGone) {
		t.Errorf("a file is imported in whose place is another one: %v", err)
	}
	owner := f.account
	for _, email := range []string{"b@example.org", "c@example.org", "d@example.org"} {
		account := schema.Account{Email: email, CreatedAt: time.Now()}
		testkit.Must(t, f.store.CreateAccount(t.Context(), &account))
		f.account = account.ID
		// Random bytes cannot be compressed.
		file := io.MultiReader(strings.NewReader(rows(1)), strings.NewReader("x,"),
			io.LimitReader(&noise{rand.New(rand.NewPCG(1, 2))}, transfer.MaxFile-1<<20))
		testkit.Must(t, f.receive(m, file))
		f.wait(m, transfer.PhaseReady)
	}
	f.account = owner
	interrupted(second)
	f.account++ // the first of the others
	job, err := m.Find(t.Context(), f.account)
	testkit.Must(t, err)
	interrupted(job)
	f.account += 2
	job, err = m.Find(t.Context(), f.account)
	testkit.Must(t, err)
	stop()
	interrupted(job)
}

// stalled is a connection that sends a file, and then nothing until it is closed.
type stalled struct {
	file   io.Reader
	begun  func()
	closed chan struct{}
}

func (s stalled) Read(to []byte) (int, error) {
	s.begun()
	if n, err := s.file.Read(to); err == nil {
		return n, nil
	}
	<-s.closed
	return 0, io.ErrUnexpectedEOF
}

// TestStalledFiles has accounts whose files are as large as can be, and do not end.
func TestStalledFiles(t *testing.T) {
	f := newUploads(t)
	m, _ := f.process(nil)
	closed := make(chan struct{})
	var sending sync.WaitGroup
	stall := func(file io.Reader) (ended chan error) {
		ended = make(chan error, 1)
		account := f.account
		begun, begin := context.WithCancel(t.Context())
		sending.Go(func() {
			ended <- m.Receive(context.Background(), account, "links.csv", transfer.Choice{}, stalled{file, begin, closed})
		})
		select {
		case <-begun.Done():
		case err := <-ended: // refused at once
			ended <- err
		}
		return ended
	}
	defer sending.Wait()
	defer close(closed)
	another := func(email string) {
		account := schema.Account{Email: email, CreatedAt: time.Now()}
		testkit.Must(t, f.store.CreateAccount(t.Context(), &account))
		f.account = account.ID
	}
	const size = transfer.MaxFile - 1<<20
	for n, held := range []bool{true, false} {
		another(fmt.Sprint(n, "@example.org"))
		ended := stall(io.LimitReader(&noise{rand.New(rand.NewPCG(1, 2))}, size))
		job := transfer.Job{}
		testkit.Eventually(t, "the process holds the file, or refuses it", func() bool {
			var err error
			job, err = m.Find(t.Context(), f.account)
			return err == nil && (job.Size == size || job.Phase == transfer.PhaseFailed)
		})
		testkit.Equal(t, "refused", job.Phase == transfer.PhaseFailed, !held)
		if !held {
			if err := <-ended; !errors.Is(err, transfer.ErrBusy) {
				t.Errorf("refused with %v", err)
			}
		}
	}
	another("small@example.org")
	testkit.Must(t, f.receive(m, strings.NewReader(rows(twoParts))))
	f.wait(m, transfer.PhaseReady)
	for range 2 {
		testkit.Eventually(t, "a connection that sends nothing has a place", func() bool {
			return len(stall(strings.NewReader(""))) == 0
		})
	}
	if err := f.receive(m, strings.NewReader("")); !errors.Is(err, transfer.ErrWorking) {
		t.Errorf("a third connection of the account: %v", err)
	}
	another("other@example.org")
	if err := f.receive(m, strings.NewReader("")); !errors.Is(err, transfer.ErrEmpty) {
		t.Errorf("another account: %v", err)
	}
}

// noise is letters in no order, in lines of 8 KiB that are not links.
type noise struct{ random *rand.Rand }

func (n *noise) Read(to []byte) (int, error) {
	to = to[:min(len(to), 8<<10)]
	for i := range to {
		if to[i] = byte(n.random.IntN(256)); to[i] == '"' || to[i] < 1<<5 {
			to[i] = ' '
		}
	}
	to[len(to)-1] = '\n'
	return len(to), nil
}

// torn is a connection that ends before its file.
type torn struct{ io.Reader }

func (b torn) Read(to []byte) (int, error) {
	n, err := b.Reader.Read(to)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func TestUnusableFiles(t *testing.T) {
	f := newUploads(t)
	m, _ := f.process(nil)
	if err := f.receive(m, strings.NewReader("")); !errors.Is(err, transfer.ErrEmpty) {
		t.Errorf("an empty file: %v", err)
	}
	if err := f.receive(m, torn{strings.NewReader(rows(twoParts))}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a file that did not arrive as a whole: %v", err)
	}
	testkit.Equal(t, "problem", f.wait(m, transfer.PhaseFailed).Problem, "The file was not received completely.")
	long := io.MultiReader(strings.NewReader(rows(1)), io.LimitReader(zeros{}, transfer.MaxFile))
	if err := f.receive(m, long); !errors.Is(err, transfer.ErrTooLarge) {
		t.Errorf("a file that is too large: %v", err)
	}
	f.wait(m, transfer.PhaseFailed)
	testkit.Must(t, f.receive(m, strings.NewReader("what,is,this\n1,2,3\n")))
	if job := f.wait(m, transfer.PhaseFailed); job.Problem == "" ||
		job.Problem == "The file was not received completely." {
		t.Errorf("a file that is not understood: %+v", job)
	}
}

// zeros are digits without end.
type zeros struct{}

func (zeros) Read(to []byte) (int, error) {
	for i := range to {
		to[i] = '0'
	}
	return len(to), nil
}

func TestErrorsOfUploads(t *testing.T) {
	f := newUploads(t)
	m, _ := f.process(nil)
	file := "alias,=long\x00_url,long_url\n" + strings.Repeat("x,,=1+1\n", transfer.MaxErrorLines)
	testkit.Must(t, f.receive(m, strings.NewReader(file)))
	f.wait(m, transfer.PhaseReady)
	lines, err := m.Errors(t.Context(), f.account)
	testkit.Must(t, err)
	if n := strings.Count(lines, "\n"); n != transfer.MaxErrorLines+1 ||
		!strings.HasPrefix(lines, "\ufeffline,column,problem\n2,") {
		t.Errorf("%d lines, which begin with %.100q", n, lines)
	}
}
