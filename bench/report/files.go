package report

import (
	"errors"
	"flag"
	"io"
	"os"
)

// Files is what a command does with the files of reports.
type Files struct {
	JSON, HTML string // to write; empty: none
	Compare    bool   // compare two reports
	Merge      bool   // merge the reports of several generators
	Limits     Limits
}

// RegisterFlags binds the settings to flags.
func (f *Files) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&f.JSON, "json", f.JSON, "`file` for the report as JSON")
	fs.StringVar(&f.HTML, "html", f.HTML, "`file` for the report, or the comparison, as a page with charts")
	fs.BoolVar(&f.Compare, "compare", f.Compare, "compare two JSON reports instead of measuring")
	fs.BoolVar(&f.Merge, "merge", f.Merge, "merge the JSON reports of generators that loaded one service at the same time")
	f.Limits.RegisterFlags(fs)
}

// Write writes the report as a table to w, and to the files. It returns an error if a check fails, otherwise one with the
// exit code 2 if a metric is beyond a limit.
func (f *Files) Write(r *Report, w io.Writer) error {
	errs := []error{r.WriteTable(w)}
	if f.JSON != "" {
		errs = append(errs, r.Save(f.JSON))
	}
	if f.HTML != "" {
		page, err := r.Page()
		errs = append(errs, err, writeFile(f.HTML, page))
	}
	if err := errors.Join(append(errs, r.Failed())...); err != nil {
		return err // limits of a wrong report mean nothing
	}
	return errors.Join(r.Unhealthy(), f.Limits.Check(r))
}

// writeFile writes content to a file. It does not touch the file if there is none.
func writeFile(path string, content []byte) error {
	if content == nil {
		return nil
	}
	return os.WriteFile(path, content, 0o644)
}

// Read reports whether the command reads reports instead of measuring.
func (f *Files) Read() bool { return f.Compare || f.Merge }

// Process compares or merges the reports in the named files.
func (f *Files) Process(paths []string, w io.Writer) error {
	switch {
	case f.Merge && f.Compare:
		return errors.New("-merge, -compare: name one of them")
	case f.Compare && len(paths) != 2:
		return errors.New("-compare: name two reports, the old one and the new one")
	}
	var reports []*Report
	for _, path := range paths {
		r, err := Load(path)
		if err != nil {
			return err
		}
		reports = append(reports, r)
	}
	if f.Compare {
		return f.compare(reports[0], reports[1], w)
	}
	merged, err := Merge(reports)
	if err != nil {
		return err
	}
	return f.Write(merged, w)
}

// compare writes the differences of two reports to w, and to the file for HTML.
func (f *Files) compare(old, new *Report, w io.Writer) error {
	changes, err := Compare(old, new)
	if err != nil {
		return err
	}
	if err := WriteChanges(w, old, new, changes); err != nil {
		return err
	}
	if f.HTML != "" {
		page, err := ComparePage(old, new, changes)
		if err := errors.Join(err, writeFile(f.HTML, page)); err != nil {
			return err
		}
	}
	return errors.Join(f.Limits.CheckChanges(changes), f.Limits.Check(new))
}
