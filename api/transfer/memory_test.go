package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/api/links"
	"linkstream/api/transfer"
	"linkstream/schema"
	"linkstream/schema/blocklist"
	"linkstream/schema/testkit"
)

// forgetful is a store that keeps nothing.
type forgetful struct {
	schema.Database
	created int64
}

func (*forgetful) LinksByHash(context.Context, []schema.LinkKey) ([]schema.Link, error) {
	return nil, nil
}
func (*forgetful) Domains(context.Context, int64) ([]schema.Domain, error)   { return nil, nil }
func (*forgetful) VerifiedHosts(context.Context, []string) ([]string, error) { return nil, nil }
func (s *forgetful) CreateLinks(_ context.Context, batch *schema.LinkBatch) error {
	s.created += int64(len(batch.Links))
	batch.Errs = make([]error, len(batch.Links))
	return nil
}

// Links and LinksAfter have forgetfulLinks links.
func (s *forgetful) Links(context.Context, int64, schema.LinkFilter, int64) ([]schema.Link, int64, error) {
	return []schema.Link{{Ordinal: forgetfulLinks}}, forgetfulLinks, nil
}
func (s *forgetful) LinksAfter(
	_ context.Context, _ int64, _ schema.LinkFilter, after schema.LinkPosition, limit int,
) ([]schema.Link, error) {
	page := make([]schema.Link, 0, limit)
	for ordinal := after.Ordinal + 1; ordinal <= forgetfulLinks && len(page) < limit; ordinal++ {
		page = append(page, schema.Link{ID: ordinal, Ordinal: ordinal, Hash: fmt.Sprint("h", ordinal),
			URL: longURL(ordinal)})
	}
	return page, nil
}
func (s *forgetful) ClickCounts(context.Context, []int64) (map[int64]int64, error) { return nil, nil }

const forgetfulLinks = 100_000

func longURL(i int64) string { return fmt.Sprintf("https://example.com/%060d", i) }

// TestMemoryIsBounded imports an export while it is written, and measures the memory in use after a tenth of the rows
// and after all of them.
func TestMemoryIsBounded(t *testing.T) {
	var early, late uint64
	measure := func(rows int64) {
		var stats runtime.MemStats
		switch rows {
		case forgetfulLinks / 10:
			runtime.GC()
			runtime.ReadMemStats(&stats)
			early = stats.HeapAlloc
		case forgetfulLinks:
			runtime.GC()
			runtime.ReadMemStats(&stats)
			late = stats.HeapAlloc
		}
	}
	store, base := &forgetful{}, schema.MustParseBaseURL("https://sho.rt")
	list, err := blocklist.Open("", nil)
	testkit.Must(t, err)
	r, w := io.Pipe()
	defer r.Close()
	go func() {
		_, err := transfer.NewExporter(base, store, store).Export(context.Background(), 1, schema.LinkFilter{}, w)
		w.CloseWithError(err)
	}()
	importer := transfer.NewImporter(links.New(base, store, store, list), store, store, strictClicks{t})
	report,
		err := importer.Import(t.Context(), 1, r, transfer.Options{Progress: func(p transfer.Progress) { measure(p.Rows) }})
	testkit.Must(t, err)
	counts(t, report, forgetfulLinks, 0, 0)
	if store.created != forgetfulLinks {
		t.Errorf("%d links created", store.created)
	}
	if early == 0 || late > early+(2<<20) {
		t.Errorf("%d KiB in use after a tenth of the rows, %d KiB after all", early>>10, late>>10)
	}
}

// broken is a store that cannot create links, and says so after a while.
type broken struct{ forgetful }

var errBroken = errors.New("broken")

func (*broken) CreateLinks(context.Context, *schema.LinkBatch) error {
	time.Sleep(time.Second) // meanwhile the next rows are read, in a bubble
	return errBroken
}

// slow is a file that returns more rows than are stored together, but not twice as many, and its end once it is
// released.
type slow struct {
	reads    int
	released chan struct{}
}

func (f *slow) Read(p []byte) (int, error) {
	switch f.reads++; {
	case f.reads == 1:
		return copy(p, "long_url\n"), nil
	case f.reads < 4:
		return copy(p, strings.Repeat("https://example.com/\n", 750)), nil
	}
	<-f.released
	return 0, io.EOF
}

// TestImportEndsWithItsReading ends imports while rows are read ahead. The caller may close the file when Import
// returns.
func TestImportEndsWithItsReading(t *testing.T) {
	base := schema.MustParseBaseURL("https://sho.rt")
	list, err := blocklist.Open("", nil)
	testkit.Must(t, err)
	for name, c := range map[string]struct {
		store  schema.Database
		cancel bool
		want   error
	}{
		"after an error of the store":     {&broken{}, false, errBroken},
		"after the end of its context":    {&forgetful{}, true, context.Canceled},
		"after the end of a file's bytes": {&forgetful{}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				file := &slow{released: make(chan struct{})}
				ended := make(chan error, 1)
				go func() {
					_, err := transfer.NewImporter(links.New(base, c.store, c.store, list), c.store, c.store, strictClicks{t}).
						Import(ctx, 1, file, transfer.Options{})
					ended <- err
				}()
				time.Sleep(time.Minute)
				synctest.Wait()
				if c.cancel {
					cancel()
					synctest.Wait()
				}
				if len(ended) > 0 {
					t.Error("the import has ended while the file is read")
				}
				close(file.released)
				if err := <-ended; !errors.Is(err, c.want) {
					t.Errorf("got error %v, want %v", err, c.want)
				}
			})
		})
	}
}
