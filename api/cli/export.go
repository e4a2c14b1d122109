package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"linkstream/api/client"
	"linkstream/api/csvfile"
)

// Columns of a file, as the service writes it. The other columns have the names of fields of the API.
const (
	columnShortURL    = "short_url"
	columnAlias       = "alias"
	columnDomain      = "domain" // a host, "" for the default domain
	columnLongURL     = "long_url"
	columnTags        = "tags" // separated by spaces
	columnActive      = "is_active"
	columnHasPassword = "has_password"
	columnFormer      = "former_hashes" // separated by spaces
)

func (c *command) exportCommand() *cobra.Command {
	const short = "Write links to a CSV file, which import and the dashboard read"
	cmd := aboutLinks("export [FILE]", short, cobra.MaximumNArgs(1), func(cmd *cobra.Command, args []string) error {
		api, filter, err := c.connectFor(cmd, "q", "tag", "is_active", "deleted")
		if err != nil {
			return err
		}
		format := client.ExportLinksParams{Format: client.Csv}
		if c.json {
			format.Format = client.Ndjson
		}
		export := func(to io.Writer) error {
			resp, err := api.ExportLinks(cmd.Context(), &format, filter)
			return client.Copy(to, resp, err)
		}
		switch {
		case len(args) > 0 && args[0] != "-":
			return writeFile(args[0], func(file *os.File) error { return export(file) })
		case c.terminal:
			return export(&lineWriter{write: func(line string) error { return c.print(strings.TrimPrefix(line, csvfile.BOM)) }})
		}
		return export(c.out)
	})
	cmd.Long = short + `: the oldest link first, without a file to
standard output. With --json it writes a line of JSON for each link instead.`
	cmd.ValidArgsFunction = nil
	addFilterFlags(cmd)
	addStateFlags(cmd)
	return cmd
}

// lineWriter passes lines to write, which gets whole characters so.
type lineWriter struct {
	write func(line string) error
	begun []byte
}

func (w *lineWriter) Write(some []byte) (int, error) {
	w.begun = append(w.begun, some...)
	for {
		end := bytes.IndexByte(w.begun, '\n')
		if end < 0 {
			return len(some), nil
		}
		if err := w.write(string(w.begun[:end+1])); err != nil {
			return 0, err
		}
		w.begun = w.begun[end+1:]
	}
}

// writeFile writes a file that is at path only if it is complete. An earlier file stays until then, and its permissions
// after it. Devices and pipes are written to as they are.
func writeFile(path string, write func(*os.File) error) error {
	old, missing := os.Stat(path)
	whole := missing != nil || old.Mode().IsRegular()
	part := path
	if whole {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			path = target
		}
		part = path + ".part"
	}
	file, err := os.Create(part)
	if err != nil {
		return err
	}
	if whole && missing == nil {
		err = file.Chmod(old.Mode().Perm())
	}
	if err == nil {
		err = write(file)
	}
	err = errors.Join(err, file.Close())
	switch {
	case !whole:
		return err
	case err != nil:
		return errors.Join(err, os.Remove(part))
	}
	return os.Rename(part, path)
}
