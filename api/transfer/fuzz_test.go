package transfer_test

import (
	"bytes"
	"context"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"linkstream/api/links"
	"linkstream/api/transfer"
	"linkstream/schema"
	"linkstream/schema/blocklist"
	"linkstream/schema/testkit"
)

// strict is a store that checks the conditions that every store relies on.
type strict struct {
	forgetful
	t     *testing.T
	links []schema.Link
}

// strictClicks refuses histories that no store can keep.
type strictClicks struct{ t testing.TB }

func (s strictClicks) SetHistories(_ context.Context, histories ...schema.History) error {
	if err := schema.CheckHistories(histories); err != nil {
		s.t.Error(err)
	}
	return nil
}

func (strictClicks) ClickCounts(context.Context, int64, []int64) (map[int64]int64, error) {
	return nil, nil
}

func (s *strict) LinksByHash(_ context.Context, keys []schema.LinkKey) ([]schema.Link, error) {
	for _, key := range keys {
		if !schema.ValidHash(key.Hash) {
			s.t.Errorf("look-up of the hash %q", key.Hash)
		}
	}
	return s.links, nil
}

func (s *strict) CreateLinks(_ context.Context, batch *schema.LinkBatch) error {
	batch.Errs = make([]error, len(batch.Links))
	taken := map[schema.LinkKey]bool{}
	for i, link := range batch.Links {
		if !schema.ValidHash(link.Hash) || !utf8.ValidString(link.URL+link.Title+link.ExpiredURL) ||
			bytes.ContainsRune([]byte(link.Title), 0) ||
			utf8.RuneCountInString(link.Title) > schema.MaxTitleLen || len(link.Tags) > schema.MaxTags ||
			link.CreatedAt.IsZero() {
			s.t.Errorf("creates %+v", link)
		}
		if taken[link.Key()] {
			batch.Errs[i] = schema.Errorf(schema.CodeConflict, "taken")
			continue
		}
		taken[link.Key()] = true
		s.links = append(s.links, link)
	}
	return nil
}

func FuzzImport(f *testing.F) {
	for _, export := range exports {
		f.Add([]byte(export.file))
	}
	f.Add([]byte("\xef\xbb\xbfsep=;\r\nalias;long_url\r\n\"a\nb\";x\r\na\"b;y\r\n;\r\n\"g;https://example.com/"))
	f.Add([]byte("long_url,\x00\xff\n,\xff\nhttps://example.com/,\xff\n"))
	f.Add([]byte("url\nhttps://example.com/\nhttps://example.com/\n"))
	f.Add([]byte("short_url,url\rimp24?a,https://example.com/\r\nbit.ly,https://example.com/\n\r//a/%41/#,https://a.b/"))
	f.Add([]byte(utf16File("\ufeffalias;url\r\na;=1;https://example.com/\r", true)))
	f.Add([]byte("url,expired_url\nhttps://example.com/\nhttps://example.com/,0\n"))
	f.Add([]byte("alias,date,clicks\na,2024-01-02,5\na,2024-01-02,6\nb,1,1e9\nc,0001-01-01,5\n"))
	f.Add([]byte("{\"a\":1,\"links\":[{\"slug\":\"x\",\"url\":\"https://a.b/\",\"c\":[1,\"y\"],\"d\":{\"e\":null}},7]}"))
	f.Add([]byte("[{\"shortlink\":\"x\",\"longlink\":\"https://a.b/\",\"hits\":5,\"expiry_time\":0}"))
	f.Add([]byte("long_url\tdomain\tshort_url\nhttps://example.com/\t[::1]:80\t://a/%zz/\n"))
	list, err := blocklist.Open("", slog.New(slog.DiscardHandler))
	testkit.Must(f, err)
	base := schema.MustParseBaseURL("https://sho.rt")
	f.Fuzz(func(t *testing.T, file []byte) {
		store := &strict{t: t}
		importer := transfer.NewImporter(links.New(base, store, store, list), store, store, strictClicks{t})
		var all []transfer.RowError
		opts := transfer.Options{OnError: func(e transfer.RowError) { all = append(all, e) }}
		preview, err := importer.Preview(t.Context(), 1, bytes.NewReader(file), opts)
		if err != nil && schema.ErrorCode(err) != schema.CodeInvalid {
			t.Fatal(err)
		}
		checkReport(t, preview, all)
		previewed := all
		all = nil
		report, importErr := importer.Import(t.Context(), 1, bytes.NewReader(file), opts)
		checkReport(t, report, all)
		if report.Progress != preview.Progress || len(all) != len(previewed) || (err == nil) != (importErr == nil) ||
			!reflect.DeepEqual(report.First, preview.First) {
			t.Errorf("imported %+v, %v\npreviewed %+v, %v", report, importErr, preview, err)
		}
		if created := int64(len(store.links)); created != report.Created {
			t.Errorf("%d links created: %+v", created, report.Progress)
		}
		// A row that breaks a rule is present if an earlier one has created its link.
		again, err := importer.Import(t.Context(), 1, bytes.NewReader(file), transfer.Options{})
		if again.Created != 0 || again.Present < report.Created+report.Present || (err == nil) != (importErr == nil) {
			t.Errorf("again %+v, %v, first %+v", again.Progress, err, report.Progress)
		}
	})
}

// checkReport checks the invariants of every report.
func checkReport(t *testing.T, report transfer.Report, all []transfer.RowError) {
	t.Helper()
	if report.Rows != report.Created+report.Present+report.Failed || report.Failed > int64(len(all)) ||
		report.Failed == 0 && len(all) > 0 {
		t.Errorf("%+v with %d errors", report.Progress, len(all))
	}
	last := 0
	for _, e := range all {
		text := e.Column + e.Reason
		if e.Line < last || e.Line < 1 || e.Line < 2 && report.Separator != 0 || e.Reason == "" || !utf8.ValidString(text) ||
			strings.ContainsFunc(text, unicode.IsControl) {
			t.Errorf("error %+v after line %d", e, last)
		}
		last = e.Line
	}
	for _, row := range report.First {
		if row.Outcome != transfer.Failed && (row.ShortURL == "" || row.LongURL == "") {
			t.Errorf("%+v", row)
		}
	}
}
