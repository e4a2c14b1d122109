package transfer

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"linkstream/schema"
)

// jsonRows are the objects of the first array in a file of JSON. The columns are the names that any of the objects
// has. An object in an object has columns of both names, with a point between them.
type jsonRows struct {
	file    []byte // at most MaxFile
	decoder *json.Decoder
	names   []string
	line    int
	ended   bool
	counted int64 // bytes in which line has counted the ends of lines
}

var errNotLinks = schema.ClientErrorf(schema.CodeInvalid, "The JSON has no list of links, which are objects.")

// openJSON reads a file of JSON, and its columns.
func (r *reader) openJSON(in io.Reader, opts Options) error {
	file, err := io.ReadAll(io.LimitReader(in, MaxFile+1))
	switch {
	case err != nil:
		return err
	case len(file) > MaxFile:
		return ErrTooLarge
	}
	rows := &jsonRows{file: file, line: 1}
	if err := rows.findColumns(); err != nil {
		return err
	}
	r.rows = rows
	if err := r.setColumns(rows.names, opts); err != errUnknownColumns {
		if err == nil && !r.layout.json {
			err = schema.ClientErrorf(schema.CodeInvalid, "The format %s is CSV, not JSON.", r.layout.format)
		}
		return err
	}
	return r.unknownColumns(slices.Clone(rows.names), opts.Format)
}

// findColumns reads the whole file, and begins again.
func (r *jsonRows) findColumns() error {
	if err := r.begin(); err != nil {
		return err
	}
	seen := map[string]bool{}
	for {
		cells, err := r.object()
		if errors.Is(err, io.EOF) {
			break
		}
		var bad *RowError
		if err != nil && !errors.As(err, &bad) {
			return err
		}
		for name := range cells {
			if !seen[name] && len(seen) == maxColumns {
				return schema.ClientErrorf(schema.CodeInvalid, "The links of the JSON have more than %d fields.", maxColumns)
			}
			seen[name] = true
		}
	}
	for name := range seen {
		r.names = append(r.names, name)
	}
	slices.Sort(r.names)
	if len(r.names) == 0 {
		return errNotLinks
	}
	return r.begin()
}

// begin decodes the file up to the first element of its first array.
func (r *jsonRows) begin() error {
	r.decoder = json.NewDecoder(bytes.NewReader(r.file))
	r.ended = false
	for depth := 0; ; {
		token, err := r.decoder.Token()
		if err != nil {
			return r.broken(err)
		}
		switch token {
		case json.Delim('['):
			return nil
		case json.Delim('{'):
			if depth++; depth > 1 {
				return errNotLinks
			}
		case json.Delim('}'):
			return errNotLinks
		}
	}
}

func (r *jsonRows) broken(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return schema.ClientErrorf(schema.CodeInvalid, "The file is not complete JSON: line %d cannot be read.", r.lineAt(
			r.decoder.InputOffset()))
	}
	return err
}

func (r *jsonRows) lineAt(offset int64) int {
	if offset < r.counted {
		r.line, r.counted = 1, 0
	}
	r.line += bytes.Count(r.file[r.counted:offset], []byte("\n"))
	r.counted = offset
	return r.line
}

// object returns the fields of the next object, io.EOF after the last one.
func (r *jsonRows) object() (map[string]string, error) {
	if !r.decoder.More() {
		if _, err := r.decoder.Token(); err != nil {
			return nil, r.broken(err)
		}
		r.ended = true
		return nil, io.EOF
	}
	var raw json.RawMessage
	if err := r.decoder.Decode(&raw); err != nil {
		return nil, r.broken(err)
	}
	line := r.lineAt(r.decoder.InputOffset() - int64(len(raw))) // where the object begins
	var object map[string]any
	if len(raw) <= maxRowBytes { // a decoded object takes many times as much
		if err := decodeNumbers(raw, &object); err != nil {
			object = nil
		}
	}
	if object == nil {
		return nil, &RowError{Line: line, Reason: "The link is no object of at most 64 KiB."}
	}
	cells := map[string]string{}
	addCells(cells, "", object)
	return cells, nil
}

func decodeNumbers(raw []byte, to any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return decoder.Decode(to)
}

// addCells adds the fields of an object as texts: a list of texts with | between them, null as "".
func addCells(cells map[string]string, prefix string, object map[string]any) {
	for name, value := range object {
		name = prefix + name
		switch value := value.(type) {
		case nil:
			cells[name] = ""
		case string:
			cells[name] = value
		case json.Number:
			cells[name] = value.String()
		case map[string]any:
			if prefix == "" {
				addCells(cells, name+".", value)
			}
		case []any:
			var texts []string
			for _, element := range value {
				if text, ok := element.(string); ok {
					texts = append(texts, text)
				}
			}
			cells[name] = strings.Join(texts, "|")
		case bool:
			cells[name] = map[bool]string{true: "true", false: "false"}[value]
		}
	}
}

func (r *jsonRows) next() (record, error) {
	cells, err := r.object()
	if err != nil {
		return record{}, err
	}
	rec := record{line: r.line, cells: make([]string, len(r.names))}
	for i, name := range r.names {
		rec.cells[i] = cells[name]
	}
	return rec, nil
}

func (r *jsonRows) offset() int64 {
	if r.ended {
		return int64(len(r.file))
	}
	return r.decoder.InputOffset()
}
