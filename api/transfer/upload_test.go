package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"linkstream/api/shorten"
	"linkstream/api/transfer"
	"linkstream/schema"
	"linkstream/schema/blocklist"
	"linkstream/schema/service"
	"linkstream/schema/sqlite"
	"linkstream/schema/sqlite/sqlitetest"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

type uploads struct {
	t       *testing.T
	store   *sqlite.Store
	account int64
}

func newUploads(t *testing.T) *uploads {
	t.Helper()
	store := sqlitetest.New(t)
	account := schema.Account{Email: "a@example.org", CreatedAt: time.Now()}
	testkit.Must(t, store.CreateAccount(t.Context(), &account))
	return &uploads{t, store, account.ID}
}

// process runs a Manager of a process until stop, and at most until the test ends.
func (f *uploads) process(fault storetest.Fault) (m *transfer.Uploads, stop func()) {
	f.t.Helper()
	log := slog.New(slog.NewTextHandler(f.t.Output(), nil))
	list, err := blocklist.Open("", log)
	testkit.Must(f.t, err)
	db := storetest.FaultyDatabase{Database: f.store, Fault: fault}
	shortener := shorten.New(schema.MustParseBaseURL("https://sho.rt"), db, db, list)
	m = transfer.NewUploads(db, transfer.NewImporter(shortener, db, db), log)
	stop = service.RunInBackground(context.Background(), m.Run)
	f.t.Cleanup(stop)
	return m, stop
}

func (f *uploads) receive(m *transfer.Uploads, file io.Reader) error {
	return m.Receive(f.t.Context(), f.account, "links.csv", nil, file, func() {})
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

func rows(n int) string {
	var file strings.Builder
	file.WriteString("alias,long_url\n")
	for i := range n {
		fmt.Fprintf(&file, "row-%d,https://example.org/%d\n", i, i)
	}
	return file.String()
}

func TestUpload(t *testing.T) {
	f := newUploads(t)
	m, _ := f.process(nil)
	testkit.Must(t, f.receive(m, strings.NewReader(rows(2500))))
	job := f.wait(m, transfer.PhaseReady)
	testkit.Equal(t, "to create", job.Report.Created, 2500)
	testkit.Must(t, m.Start(t.Context(), f.account, job.ID, transfer.PhaseImporting))
	job = f.wait(m, transfer.PhaseDone)
	testkit.Equal(t, "created", job.Report.Created, 2500)
	testkit.Equal(t, "percent", job.Percent(), 100)
	if _, err := f.store.UploadPart(t.Context(), job.ID, 0); schema.ErrorCode(err) != schema.CodeNotFound {
		t.Errorf("the file is kept: %v", err)
	}
	if err := m.Start(t.Context(), f.account, job.ID, transfer.PhaseImporting); !errors.Is(err, transfer.ErrGone) {
		t.Errorf("it is imported again: %v", err)
	}
}

// TestStoppedProcess stops a process in mid-import. Another one goes on, and makes each link once.
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
	testkit.Must(t, first.Start(t.Context(), f.account, job.ID, transfer.PhaseImporting))
	<-stopping
	if err := second.Start(t.Context(), f.account, job.ID, transfer.PhaseImporting); !errors.Is(err, transfer.ErrWorking) {
		t.Errorf("two processes work on one file: %v", err)
	}
	if err := f.receive(second, strings.NewReader(rows(1))); !errors.Is(err, transfer.ErrWorking) {
		t.Errorf("the file is replaced while it is imported: %v", err)
	}
	stop()
	job, err := second.Find(t.Context(), f.account)
	testkit.Must(t, err)
	if !job.Interrupted() || job.Report.Created != 1000 {
		t.Fatalf("%s, interrupted %t, created %d", job.Phase, job.Interrupted(), job.Report.Created)
	}
	if err := f.receive(first, strings.NewReader(rows(1))); !errors.Is(err, transfer.ErrBusy) {
		t.Errorf("a process that has stopped takes a file: %v", err)
	}
	testkit.Must(t, second.Start(t.Context(), f.account, job.ID, transfer.PhaseImporting))
	job = f.wait(second, transfer.PhaseDone)
	testkit.Equal(t, "created and present", []int64{job.Report.Created, job.Report.Present}, []int64{1500, 1000})
	_, total, err := f.store.Links(t.Context(), f.account, schema.LinkFilter{}, 1)
	testkit.Must(t, err)
	testkit.Equal(t, "links", total, 2500)
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
	if err := f.receive(m, torn{strings.NewReader(rows(50_000))}); !errors.Is(err, io.ErrUnexpectedEOF) { // of more than one part
		t.Errorf("a file that did not arrive as a whole: %v", err)
	}
	testkit.Equal(t, "problem", f.wait(m, transfer.PhaseFailed).Problem, "The file was not received completely.")
	long := io.MultiReader(strings.NewReader(rows(1)), io.LimitReader(zeros{}, transfer.MaxFile))
	if err := f.receive(m, long); !errors.Is(err, transfer.ErrTooLarge) {
		t.Errorf("a file that is too large: %v", err)
	}
	f.wait(m, transfer.PhaseFailed)
	testkit.Must(t, f.receive(m, strings.NewReader("what,is,this\n1,2,3\n")))
	if job := f.wait(m, transfer.PhaseFailed); job.Problem == "" || job.Problem == "The file was not received completely." {
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
	job := f.wait(m, transfer.PhaseReady)
	testkit.Equal(t, "lines", job.Errors, transfer.MaxErrorLines)
	lines, err := m.Errors(t.Context(), f.account)
	testkit.Must(t, err)
	if n := strings.Count(lines, "\n"); n != transfer.MaxErrorLines+1 || !strings.HasPrefix(lines, "line,column,problem\n2,") {
		t.Errorf("%d lines, which begin with %.100q", n, lines)
	}
}
