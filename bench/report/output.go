package report

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

// Output names the files that a report is written to.
type Output struct{ JSON, HTML string }

// RegisterFlags binds the names to flags.
func (o *Output) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.JSON, "json", o.JSON, "`file` for the report as JSON")
	fs.StringVar(&o.HTML, "html", o.HTML, "`file` for the report as a page with charts")
}

// Write writes the report as a table to w, and to the named files.
func (o *Output) Write(r *Report, w io.Writer) error {
	errs := []error{r.WriteTable(w)}
	if o.JSON != "" {
		errs = append(errs, r.Save(o.JSON))
	}
	if o.HTML != "" {
		page, err := r.Page()
		if err == nil {
			err = os.WriteFile(o.HTML, page, 0o644)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// CompareFiles loads two reports and writes their differences to w.
func CompareFiles(oldPath, newPath string, w io.Writer) error {
	old, err := Load(oldPath)
	if err != nil {
		return err
	}
	new, err := Load(newPath)
	if err != nil {
		return err
	}
	changes, err := Compare(old, new)
	if err != nil {
		return fmt.Errorf("%s and %s: %w", oldPath, newPath, err)
	}
	return WriteChanges(w, old, new, changes)
}
