package cli

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"linkstream/api/client"
	"linkstream/api/csvfile"
)

// exportColumns are the columns of a file, as the dashboard writes it. The other columns have the names of fields of
// the API.
var exportColumns = []string{
	columnShortURL, columnAlias, columnDomain, columnLongURL, "title", columnTags, columnActive, "created_at",
	"expires_at", "expired_url", "forward_query", "rules", "variants", "card", "max_clicks", "path_mode",
	columnHasPassword, "clicks",
}

const (
	columnShortURL    = "short_url"
	columnAlias       = "alias"
	columnDomain      = "domain" // a host, "" for the default domain
	columnLongURL     = "long_url"
	columnTags        = "tags" // separated by spaces
	columnActive      = "is_active"
	columnHasPassword = "has_password"
)

func (c *command) exportCommand() *cobra.Command {
	const short = "Write links to a CSV file, which import and the dashboard read"
	cmd := aboutLinks("export [FILE]", short, cobra.MaximumNArgs(1), func(cmd *cobra.Command, args []string) error {
		api, filter, err := c.connectFor(cmd, "q", "tag")
		if err != nil {
			return err
		}
		write := func(part []byte) error { _, err := c.out.Write(part); return err }
		if c.terminal {
			write = func(part []byte) error { return c.print(strings.TrimPrefix(string(part), csvfile.BOM)) }
		}
		if len(args) == 0 || args[0] == "-" {
			return c.export(cmd.Context(), api, filter, write)
		}
		return writeFile(args[0], func(file *os.File) error {
			return c.export(cmd.Context(), api, filter, func(part []byte) error { _, err := file.Write(part); return err })
		})
	})
	cmd.Long = short + `: the oldest link first, without a file to
standard output. With --json it writes a line of JSON for each link instead. The service is asked for each link, and
answers 2000 requests per minute.`
	cmd.ValidArgsFunction = nil
	addFilterFlags(cmd)
	return cmd
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

// export writes the links of the account that pass a filter, page by page.
func (c *command) export(ctx context.Context, api *client.Client, filter client.RequestEditorFn,
	write func([]byte) error) error {
	hosts, err := domains(ctx, api)
	if err != nil {
		return err
	}
	ids := map[string]int64{}
	for id, host := range hosts {
		ids[host] = id
	}
	var part bytes.Buffer
	rows := csv.NewWriter(&part)
	rows.UseCRLF = true
	if !c.json {
		part.WriteString(csvfile.BOM)
		_ = rows.Write(exportColumns) // a bytes.Buffer takes everything
	}
	seen := map[string]bool{} // a link that is deleted meanwhile moves others to the page before
	oldest := query(url.Values{"sort": {"created_at"}})
	return eachPage(func(page client.RequestEditorFn) (*http.Response, error) {
		return api.ListLinks(ctx, nil, filter, oldest, page)
	}, func(items []client.LinkItem) error {
		for _, item := range items {
			if seen[item.ShortUrl] {
				continue
			}
			seen[item.ShortUrl] = true
			link, err := fullLink(ctx, api, item, ids)
			if err != nil {
				return err
			}
			if c.json {
				part.Write(append(link, '\n'))
			} else if err := rows.Write(exportCells(link, hosts)); err != nil {
				return err
			}
		}
		rows.Flush()
		defer part.Reset()
		return write(part.Bytes())
	})
}

// fullLink returns all fields of a link of a list. ids has the domains of the account by host.
func fullLink(ctx context.Context, api *client.Client, item client.LinkItem, ids map[string]int64,
) (json.RawMessage, error) {
	short, err := url.Parse(item.ShortUrl)
	if err != nil {
		return nil, err
	}
	domain := ids[short.Hostname()] // 0 for the default domain
	resp, err := api.GetLink(ctx, item.Hash, &client.GetLinkParams{DomainId: &domain})
	answer, err := client.Read[struct{ Link json.RawMessage }](resp, err)
	return answer.Link, err
}

// exportCells returns the row of a link.
func exportCells(link json.RawMessage, hosts map[int64]string) []string {
	var known client.Link
	var all map[string]json.RawMessage
	_, _ = json.Unmarshal(link, &known), json.Unmarshal(link, &all) // an object: Read has decoded what it is part of
	cells := make([]string, len(exportColumns))
	for i, column := range exportColumns {
		switch column {
		case columnAlias:
			cells[i] = csvfile.Guard(known.Hash)
		case columnDomain:
			id, _ := known.DomainId.Get() // null on the default domain
			cells[i] = hosts[id]
		case columnLongURL:
			cells[i] = csvfile.Guard(known.OriginalUrl)
		case columnTags:
			cells[i] = csvfile.Guard(strings.Join(known.Tags, " "))
		default:
			cells[i] = csvfile.Guard(plain(all[column]))
		}
	}
	return cells
}
