package admin

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"linkstream/api/links"
	"linkstream/api/transfer"
	"linkstream/schema"
)

// Parts are the parts that import and export need in addition to the stores. Only these commands open them.
type Parts struct {
	Shortener func(schema.LinkStore, schema.DomainStore) (*links.Shortener, error)
	Clicks    func(context.Context) (Clicks, error) // the caller of Run closes it
	In        io.Reader                             // for the FILE "-"
	Progress  io.Writer                             // gets a line every few seconds of an import
}

// Clicks is the part of a click store that import and export need.
type Clicks = transfer.Histories

// ownClicks counts the clicks of an account.
type ownClicks struct {
	Clicks
	account int64
}

// ClickCounts is schema.ClickStore.ClickCounts for the account.
func (c ownClicks) ClickCounts(ctx context.Context, linkIDs []int64) (map[int64]int64, error) {
	return c.Clicks.ClickCounts(ctx, c.account, linkIDs)
}

// progressEvery is the time between two lines of progress.
const progressEvery = 5 * time.Second

// importLinks prints the errors of rows while it reads them, and then the counts. It fails if a row fails.
func (r *runner) importLinks(ctx context.Context, args ...string) (string, error) {
	account, err := r.account(ctx, args[0])
	if err != nil {
		return "", err
	}
	options := transfer.Options{OnError: r.printRowError, Progress: r.progress(), Source: r.options.Source,
		Map: r.options.Map, Ignore: r.options.Ignore}
	if options.Format, err = transfer.ParseFormat(r.options.Format); err != nil {
		return "", err
	}
	if options.DomainID, err = r.ownDomain(ctx, account); err != nil {
		return "", err
	}
	file, name, err := r.open(args[1])
	if err != nil {
		return "", err
	}
	defer file.Close()
	shortener, err := r.options.Parts.Shortener(r.stores, r.stores)
	if err != nil {
		return "", err
	}
	clicks, err := r.options.Parts.Clicks(ctx)
	if err != nil {
		return "", err
	}
	importer := transfer.NewImporter(shortener, r.stores, r.stores, clicks)
	run := importer.Import
	if r.options.DryRun {
		run = importer.Preview
	}
	report, err := run(ctx, account.ID, file, options)
	if report.Format != "" {
		r.printReport(report)
	}
	switch {
	case r.printErr != nil:
		return "", r.printErr
	case err != nil:
		return "", fmt.Errorf("read %s: %w", name, err)
	case report.Failed > 0:
		return "", schema.Errorf(schema.CodeInvalid, "%d of %d rows failed", report.Failed, report.Rows)
	}
	return "", nil
}

// ownDomain returns the ID of the account's domain that the options name, nil for the default domain.
func (r *runner) ownDomain(ctx context.Context, account schema.Account) (*int64, error) {
	id, err := r.linkDomain(ctx)
	if err != nil || id == 0 {
		return nil, err
	}
	domain, err := r.stores.Domain(ctx, id)
	if err == nil && domain.AccountID != account.ID {
		return nil, schema.Errorf(schema.CodeNotFound, "%q is a domain of another account", domain.Host)
	}
	return &id, err
}

func (r *runner) open(name string) (file io.ReadCloser, shown string, err error) {
	if name == "-" {
		return io.NopCloser(r.options.Parts.In), "the standard input", nil
	}
	file, err = os.Open(name)
	if err != nil {
		return nil, "", schema.Errorf(schema.CodeInvalid, "%w", err)
	}
	return file, name, nil
}

// print writes a line of a result of many lines. The first error is kept.
func (r *runner) print(format string, args ...any) {
	if r.printErr == nil {
		_, r.printErr = fmt.Fprintf(r.out, format+"\n", args...)
	}
}

func (r *runner) printRowError(e transfer.RowError) {
	if e.Column == "" {
		r.print("line %d: %s", e.Line, e.Reason)
		return
	}
	r.print("line %d, column %s: %s", e.Line, e.Column, e.Reason)
}

func (r *runner) printReport(report transfer.Report) {
	created := "created"
	if r.options.DryRun {
		created = "would be created"
	}
	for _, column := range report.Columns {
		if r.options.DryRun {
			r.print("column %s: %s", column.Name, cmp.Or(column.Meaning(), "not read"))
		}
	}
	for _, host := range report.Hosts {
		if host.Moved() {
			r.print("rows %d: Links of %s, which is no verified domain of the account, are on %s", host.Rows, host.Host,
				host.Domain)
		}
	}
	for _, note := range report.Notes {
		r.print("rows %d: %s", note.Rows, note.Text)
	}
	r.print("format %s: rows %d, %s %d, already there %d, failed %d, imported clicks %d",
		report.Format, report.Rows, created, report.Created, report.Present, report.Failed, report.Clicks)
}

// progress returns a function that prints progress from time to time.
func (r *runner) progress() func(transfer.Progress) {
	last := time.Now()
	return func(p transfer.Progress) {
		if r.options.Parts.Progress == nil || time.Since(last) < progressEvery {
			return
		}
		last = time.Now()
		// Errors of printing progress do not stop the transfer.
		fmt.Fprintf(r.options.Parts.Progress, "rows %d, created %d, already there %d, failed %d\n", p.Rows, p.Created,
			p.Present, p.Failed)
	}
}

// exportLinks prints the links of an account as a CSV file.
func (r *runner) exportLinks(ctx context.Context, args ...string) (string, error) {
	account, err := r.account(ctx, args[0])
	if err != nil {
		return "", err
	}
	clicks, err := r.options.Parts.Clicks(ctx)
	if err != nil {
		return "", err
	}
	_, err = transfer.NewExporter(r.options.EdgeURL, r.stores, ownClicks{clicks, account.ID}).Export(ctx, account.ID,
		schema.LinkFilter{}, r.out)
	return "", err
}
