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
	Limits     Limits
}

// RegisterFlags binds the settings to flags.
func (f *Files) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&f.JSON, "json", f.JSON, "`file` for the report as JSON")
	fs.StringVar(&f.HTML, "html", f.HTML, "`file` for the report, or the comparison, as a page with charts")
	fs.BoolVar(&f.Compare, "compare", f.Compare, "compare two JSON reports instead of measuring")
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
	return f.Limits.Check(r)
}

// writeFile writes content to a file. It does not touch the file if there is none.
func writeFile(path string, content []byte) error {
	if content == nil {
		return nil
	}
	return os.WriteFile(path, content, 0o644)
}

// CompareFiles loads two reports, and writes their differences to w and to the file for HTML.
func (f *Files) CompareFiles(paths []string, w io.Writer) error {
	if len(paths) != 2 {
		return errors.New("-compare: name two reports, the old one and the new one")
	}
	old, err := Load(paths[0])
	if err != nil {
		return err
	}
	new, err := Load(paths[1])
	if err != nil {
		return err
	}
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
