package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"linkstream/api/client"
	"linkstream/api/csvfile"
)

const (
	batchLinks = 1000    // the most that the API takes at once
	batchBytes = 3 << 20 // of its 4 MiB
)

func (c *command) importCommand() *cobra.Command {
	dry := false
	cmd := &cobra.Command{Use: "import FILE", Short: "Create the links of a CSV file",
		Long: `Create the links of a CSV file, as export and the dashboard write it, or of standard input with -. It needs a
column long_url. Counts and times of creation are not imported (the dashboard takes those), nor passwords, which no file
has.

Rows that cannot be imported are listed, and the exit code is then 1. An import that was interrupted goes on when it is
run again within 24 hours with the same file: what was created is not created again. With --dry-run the rows are read
and nothing is created; the service judges URLs and aliases only when it creates links.`,
		Args: cobra.ExactArgs(1)}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "read the file, create nothing")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := c.connect()
		if err != nil {
			return err
		}
		file := c.in
		if args[0] != "-" {
			if file, err = os.Open(args[0]); err != nil {
				return usageError{err}
			}
			defer file.Close()
		}
		hosts, err := domains(cmd.Context(), api)
		if err != nil {
			return err
		}
		rows, err := newRowReader(file, hosts)
		if err != nil {
			return err
		}
		i := importer{c: c, api: api, dry: dry}
		return errors.Join(i.all(cmd.Context(), rows), i.report())
	}
	return cmd
}

// importer creates links in batches.
type importer struct {
	c       *command
	api     *client.Client
	dry     bool
	batches int
	created int
	failed  [][]string // line, link, and what is wrong
}

func (i *importer) all(ctx context.Context, rows *rowReader) error {
	var batch []importRow
	size := 0
	for {
		row, problem, err := rows.next()
		if err != nil && err != io.EOF {
			return err
		}
		if problem != "" {
			i.failed = append(i.failed, []string{fmt.Sprint(row.line), row.name, problem})
			continue
		}
		length := encode(row.body).Len()
		if len(batch) > 0 && (err == io.EOF || len(batch) == batchLinks || size+length > batchBytes) {
			if err := i.create(ctx, batch); err != nil {
				return fmt.Errorf("before line %d, run it again to go on: %w", batch[0].line, err)
			}
			batch, size = nil, 0
		}
		if err == io.EOF {
			if i.created+len(i.failed) == 0 {
				return usagef("the file has no rows")
			}
			return nil
		}
		batch, size = append(batch, row), size+length
	}
}

// create creates the links of a batch. Its keys are made of what it creates, so that a repetition creates nothing.
func (i *importer) create(ctx context.Context, batch []importRow) error {
	if i.batches++; i.dry {
		i.created += len(batch)
		return nil
	}
	bodies := make([]map[string]any, len(batch))
	for n, row := range batch {
		bodies[n] = row.body
	}
	body := encode(map[string]any{"links": bodies})
	key := i.key(body)
	resp, err := i.api.CreateLinksWithBody(ctx, &client.CreateLinksParams{IdempotencyKey: &key}, jsonType, body)
	made, err := client.Read[client.BulkAnswer](resp, err)
	if err != nil {
		return err
	}
	if len(made.Results) != len(batch) {
		return fmt.Errorf("the service answered with %d results for %d links", len(made.Results), len(batch))
	}
	var off []map[string]any
	for n, result := range made.Results {
		switch {
		case !result.Success:
			i.failed = append(i.failed, []string{fmt.Sprint(batch[n].line), batch[n].name, reason(result)})
			continue
		case batch[n].off:
			off = append(off, map[string]any{"hash": result.Hash, "domain_id": batch[n].body["domain_id"]})
		}
		i.created++
		if result.Hash == nil || len(batch[n].former) == 0 {
			continue
		}
		if err := i.addFormer(ctx, batch[n], *result.Hash); err != nil {
			return err
		}
	}
	if len(off) == 0 {
		return nil
	}
	body = encode(map[string]any{"links": off, "set": map[string]any{"is_active": false}})
	key = i.key(body)
	resp, err = i.api.EditLinksWithBody(ctx, &client.EditLinksParams{IdempotencyKey: &key}, jsonType, body)
	_, err = client.Read[json.RawMessage](resp, err)
	return err
}

// addFormer gives a link its former names: the link takes one former name after the other, and its own name at last. A
// repetition leads to the same names.
func (i *importer) addFormer(ctx context.Context, row importRow, hash string) error {
	domain := query(url.Values{"domain_id": {fmt.Sprint(cmp.Or[any](row.body["domain_id"], 0))}})
	for _, name := range append(slices.Clone(row.former), hash) {
		resp, err := i.api.EditLinkWithBody(ctx, hash, nil, jsonType, encode(map[string]any{"alias": name}), domain)
		_, err = client.Read[json.RawMessage](resp, err)
		var refused *client.Error
		switch {
		case errors.As(err, &refused) && refused.Status == http.StatusUnprocessableEntity:
			why := columnFormer + ": " + name + ": " + strings.Join(refused.Fields["alias"], " ")
			i.failed = append(i.failed, []string{fmt.Sprint(row.line), row.name, why})
		case err != nil:
			return err
		}
	}
	return nil
}

// key returns the Idempotency-Key of a body of the current batch.
func (i *importer) key(body io.ReadSeeker) string {
	digest := sha256.New()
	fmt.Fprintln(digest, i.batches)
	_, _ = io.Copy(digest, body)
	_, _ = body.Seek(0, io.SeekStart) // a bytes.Reader
	return "import-" + hex.EncodeToString(digest.Sum(nil)[:16])
}

// reason returns why a link was not created.
func reason(result client.BulkResult) string {
	var reasons []string
	if result.Errors != nil {
		for _, field := range slices.Sorted(maps.Keys(*result.Errors)) {
			name := field[strings.LastIndexByte(field, '.')+1:] // without links.N.
			reasons = append(reasons, name+": "+strings.Join((*result.Errors)[field], " "))
		}
	} else if result.Message != nil {
		reasons = append(reasons, *result.Message)
	}
	return cmp.Or(strings.Join(reasons, " "), "the service gave no reason")
}

// report prints what cannot be imported, and how much was.
func (i *importer) report() error {
	if i.c.json {
		line, err := json.Marshal(map[string]any{"created": i.created, "failed": i.failed})
		if err != nil {
			return err
		}
		if err := i.c.printJSON(line); err != nil {
			return err
		}
	} else if err := i.c.table([]string{"LINE", "LINK", "PROBLEM"}, i.failed); err != nil {
		return err
	}
	done := "created"
	if i.dry {
		done = "would be created"
	}
	fmt.Fprintf(i.c.err, "%d links %s, %d not\n", i.created, done, len(i.failed))
	if len(i.failed) > 0 {
		return errors.New("some links were not imported")
	}
	return nil
}

// importRow is a row of a file.
type importRow struct {
	line int
	name string         // of the link in messages
	body map[string]any // of shorten
	off  bool           // the link does not redirect
	// its former names
	former []string
}

// readers are the columns of an import, and how the fields of their names are read. nil columns are not imported.
var readers = map[string]func(string) (any, error){
	columnAlias: text, columnDomain: text, columnLongURL: text, "title": text, "expires_at": moment, "expired_url": text,
	"password": text, columnTags: words,
	"forward_query": truth, columnActive: truth, "max_clicks": limit,
	"rules": value, "variants": value, "card": value, "path_mode": text, "external_id": text,
	columnShortURL: text, "created_at": nil, "clicks": nil, columnHasPassword: nil, columnFormer: words,
}

func words(cell string) (any, error) { return strings.Fields(cell), nil }

func value(cell string) (any, error) {
	var v json.RawMessage
	return v, json.Unmarshal([]byte(cell), &v)
}

// rowReader reads a file of links.
type rowReader struct {
	csv     *csv.Reader
	columns []string
	ids     map[string]int64 // of domains by host
}

func newRowReader(file io.Reader, hosts map[int64]string) (*rowReader, error) {
	plain, err := csvfile.Text(file)
	if err != nil {
		return nil, err
	}
	r := &rowReader{csv: csv.NewReader(plain), ids: map[string]int64{}}
	for id, host := range hosts {
		r.ids[host] = id
	}
	columns, err := r.csv.Read()
	if err != nil {
		return nil, usagef("the file is not CSV: %w", err)
	}
	for i, column := range columns {
		columns[i] = strings.ToLower(strings.TrimSpace(column))
		if _, known := readers[columns[i]]; !known {
			return nil, usagef("the column %q is none of an export; the dashboard imports files of other services", column)
		}
	}
	r.columns = columns
	return r, nil
}

// next returns the next row, or io.EOF. problem says why it cannot be imported.
func (r *rowReader) next() (row importRow, problem string, err error) {
	cells, err := r.csv.Read()
	if err != nil {
		return row, "", err
	}
	row.line, _ = r.csv.FieldPos(0)
	row.body = map[string]any{}
	for i, column := range r.columns {
		cell := csvfile.Unguard(cells[i])
		if cell == "" || readers[column] == nil {
			continue
		}
		read, err := readers[column](cell)
		if err != nil {
			return row, column + ": " + err.Error(), nil
		}
		switch column {
		case columnAlias:
			row.body["alias"], row.name = read, cell
		case columnShortURL: // the link must not get another alias than the file names
			if _, alias := csvfile.SplitShortURL(cell); row.name == "" {
				row.body["alias"], row.name = alias, cell
			}
		case columnDomain:
			id, known := r.ids[strings.ToLower(cell)]
			if !known {
				return row, "domain: the account has no domain " + cell, nil
			}
			row.body["domain_id"] = id
		case columnActive:
			row.off = read == false
		case columnFormer:
			row.former, _ = read.([]string)
		default:
			row.body[column] = read
		}
	}
	if row.name == "" {
		row.name, _ = row.body[columnLongURL].(string)
	}
	if row.body[columnLongURL] == nil {
		problem = "long_url: is missing"
	}
	return row, problem, nil
}
