package transfer

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"linkstream/api/csvfile"
	"linkstream/api/links"
	"linkstream/schema"
)

// Limits of a file.
const (
	maxRowBytes = 64 << 10
	maxColumns  = 64
	readBuffer  = 32 << 10 // also the longest first line
)

// maxColumnName bounds the names of columns in messages.
const maxColumnName = 64

// rows are the rows of a file.
type rows interface {
	// next returns the next row, io.EOF after the last one. Of a row that cannot be read it returns a *RowError, and more
	// rows may follow. After any other error none follow.
	next() (record, error)
	// offset returns how many bytes were read, up to the end of the last row.
	offset() int64
}

// record is a row of a file: a cell for each column.
type record struct {
	line  int
	cells []string // valid until the next record is read; the strings remain valid
}

// reader reads a file.
type reader struct {
	rows
	layout    layout
	separator rune // 0: the file is JSON
	columns   []Column
	cells     fields // scratch of item
}

// csvRows are the rows of CSV.
type csvRows struct {
	csv     *csv.Reader
	source  *boundedReader
	columns []Column
	before  int // lines before what csv reads
}

// openReader reads the first line. CodeInvalid, with a message, if it does not name the columns of a known format; then
// the reader has the columns, and no rows.
func openReader(file io.Reader, opts Options) (*reader, error) {
	r := &reader{cells: fields{}}
	text, err := csvfile.Text(file)
	if err != nil {
		return r, err
	}
	source := &boundedReader{source: text, allowed: maxRowBytes + 2*readBuffer}
	in := bufio.NewReaderSize(source, readBuffer)
	head, err := in.Peek(readBuffer)
	if err != nil && !errors.Is(err, io.EOF) {
		return r, err
	}
	switch start := bytes.TrimSpace(head); {
	case len(start) == 0:
		return r, schema.ClientErrorf(schema.CodeInvalid, "The file is empty.")
	case start[0] == '{' || start[0] == '[':
		source.allowed = math.MaxInt64
		return r, r.openJSON(in, opts)
	}
	return r, r.openCSV(in, source, head, opts)
}

func (r *reader) openCSV(in *bufio.Reader, source *boundedReader, head []byte, opts Options) error {
	before := 0
	separators := []rune{',', ';', '\t'}
	if line, rest, found := bytes.Cut(head, []byte("\n")); found { // the first line of Excel's own files
		line = bytes.TrimSuffix(line, []byte("\r"))
		if named, found := bytes.CutPrefix(line, []byte("sep=")); found && len(named) == 1 &&
			slices.Contains(separators, rune(named[0])) {
			separators = []rune{rune(named[0])}
			in.Discard(len(head) - len(rest))
			head, before = rest, 1
		}
	}
	if err := r.readHeader(head, separators, opts); err != nil {
		return err
	}
	rows := &csvRows{newCSV(in, r.separator), source, r.columns, before}
	r.rows = rows
	_, err := rows.csv.Read() // the first line, which was recognized
	return unreadable(err)
}

// otherKinds are files that people take for CSV, by their first bytes.
var otherKinds = []struct{ begins, name, advice string }{
	{"PK\x03\x04", "a workbook or an archive", "Open it, and save or export the table as CSV in UTF-8."},
	{"\xd0\xcf\x11\xe0", "a workbook", "Open it, and save or export the table as CSV in UTF-8."},
	{"\x1f\x8b", "compressed", "Unpack it first."},
	{"<", "a web page or XML", "Perhaps it is an error page: download the file again."},
}

func newCSV(in io.Reader, separator rune) *csv.Reader {
	c := csv.NewReader(in)
	c.Comma, c.FieldsPerRecord, c.ReuseRecord = separator, -1, true
	return c
}

// readHeader recognizes the separator and the columns in the beginning of a file.
func (r *reader) readHeader(head []byte, separators []rune, opts Options) error {
	var found []string // the names by the separator that gives the most
	for _, separator := range separators {
		names, err := newCSV(bytes.NewReader(head), separator).Read()
		if err != nil || len(names) > maxColumns {
			continue
		}
		if len(names) > len(found) {
			found, r.separator = names, separator
		}
		if err := r.setColumns(names, opts); err != errUnknownColumns {
			r.separator = separator
			return err
		}
	}
	for _, kind := range otherKinds {
		if bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte(kind.begins)) {
			return schema.ClientErrorf(schema.CodeInvalid, "The file is not CSV but %s. %s", kind.name, kind.advice)
		}
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return schema.ClientErrorf(schema.CodeInvalid, "The file is not text. Save or export the table as CSV in UTF-8.")
	}
	return r.unknownColumns(found, opts.Format)
}

// errUnknownColumns is the outcome of setColumns for columns of no format.
var errUnknownColumns = errors.New("the columns are of no format")

// setColumns recognizes the format of a file with these columns.
func (r *reader) setColumns(names []string, opts Options) (err error) {
	l, known := recognize(names, opts.Format)
	if !known && opts.Map[links.FieldLongURL] == "" {
		return errUnknownColumns
	}
	if !known {
		l = layouts[slices.IndexFunc(layouts, func(l layout) bool { return l.format == Linkstream })]
	}
	r.layout = l
	r.columns, err = l.columns(names, opts)
	return err
}

// unknownColumns says which columns were found and which are needed.
func (r *reader) unknownColumns(found []string, wanted Format) error {
	if len(found) == 0 {
		return schema.ClientErrorf(schema.CodeInvalid, "The file has no first line that names its columns.")
	}
	for i, name := range found {
		if !utf8.ValidString(name) {
			return schema.ClientErrorf(schema.CodeInvalid, "The first line of the file is not UTF-8. Save it as CSV in UTF-8.")
		}
		found[i] = shortened(printable(name))
		r.columns = append(r.columns, Column{Name: found[i]})
	}
	if wanted != "" {
		return schema.ClientErrorf(schema.CodeInvalid, "The columns %s are not those of an export of %s, which has %s.",
			strings.Join(found, ", "), wanted, neededBy(wanted))
	}
	return schema.ClientErrorf(schema.CodeInvalid,
		"The columns %s are not known. The first line must name the columns, and one of them must be long_url.",
		strings.Join(found, ", "))
}

// neededBy names the columns without which a file is not of a format.
func neededBy(format Format) string {
	var sets []string
	for _, l := range layouts {
		for _, needed := range l.needs {
			if l.format == format {
				sets = append(sets, strings.Join(needed, " and "))
			}
		}
	}
	return strings.Join(sets, ", or ")
}

// shortened returns the beginning of a name that is too long for a message.
func shortened(name string) string {
	if len(name) <= maxColumnName {
		return name
	}
	return strings.ToValidUTF8(name[:maxColumnName], "") + "…"
}

func (r *csvRows) next() (record, error) {
	for {
		r.source.allowed = r.csv.InputOffset() + maxRowBytes + 2*readBuffer
		cells, err := r.csv.Read()
		if err != nil {
			return record{}, r.explain(err)
		}
		if !slices.ContainsFunc(cells, func(cell string) bool { return strings.TrimSpace(cell) != "" }) {
			continue // spreadsheets write rows of empty cells
		}
		line, _ := r.csv.FieldPos(0)
		line += r.before
		if len(cells) != len(r.columns) {
			// Cells that are left out at the end are empty.
			extra := cells[min(len(cells), len(r.columns)):]
			if slices.ContainsFunc(extra, func(cell string) bool { return cell != "" }) {
				return record{}, &RowError{Line: line, Reason: "The row has more cells than there are columns."}
			}
			for len(cells) < len(r.columns) {
				cells = append(cells, "")
			}
			cells = cells[:len(r.columns)]
		}
		for i, cell := range cells {
			if !utf8.ValidString(cell) {
				return record{}, &RowError{Line: line, Column: r.columns[i].Name,
					Reason: "The text is not UTF-8. Save the file as CSV in UTF-8."}
			}
		}
		return record{line, cells}, nil
	}
}

// explain turns an error of the CSV reader into an error for the client.
func (r *csvRows) explain(err error) error {
	var syntax *csv.ParseError
	if !errors.As(err, &syntax) {
		return unreadable(err)
	}
	const write = ` Write such a cell as "…", and each quotation mark in it twice: "say ""hello""".`
	reason := "A cell has a quotation mark in its text." + write
	if errors.Is(err, csv.ErrQuote) {
		reason = "A cell begins with a quotation mark, and the one that ends it is missing, or text follows it." + write
	}
	return &RowError{Line: syntax.StartLine + r.before, Reason: reason}
}

func unreadable(err error) error {
	if errors.Is(err, errRowTooLong) {
		return schema.ClientErrorf(schema.CodeInvalid,
			"A row is longer than 64 KiB. Perhaps a quoted cell has no quote at its end.")
	}
	return err
}

func (r *csvRows) offset() int64 { return r.csv.InputOffset() }

// boundedReader bounds the bytes of one row, which the CSV reader has in memory as a whole.
type boundedReader struct {
	source        io.Reader
	read, allowed int64
}

var errRowTooLong = errors.New("row is too long")

func (r *boundedReader) Read(p []byte) (int, error) {
	if r.read > r.allowed {
		return 0, errRowTooLong
	}
	n, err := r.source.Read(p)
	r.read += int64(n)
	return n, err
}

// Error makes RowError an error for the reader.
func (e *RowError) Error() string { return e.Reason }
