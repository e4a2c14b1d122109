package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"linkstream/api/client"
)

const (
	jsonType = "application/json"
	// defaultDomain stands for the service's own domain in --domain.
	defaultDomain = "default"
	// nothing stands for null in flags.
	nothing = "none"
)

// linkField is a flag that sets a field of a link.
type linkField struct {
	flag, field, usage string
	parse              func(string) (any, error)
}

var linkFields = []linkField{
	{"title", "title", "a `name` for people", text},
	{"tag", "tags", "all its `tags`, separated by commas", list},
	{"expires", "expires_at", "the `time` of its end, such as 2030-01-31 or 2030-01-31T18:00:00+01:00, or none", moment},
	{"expired-url", "expired_url", "the `URL` for visitors after its end, or none", orNothing},
	{"forward-query", "forward_query", "pass the query of visitors on: `true` or false", truth},
	{"max-clicks", "max_clicks", "end after this `number` of clicks, or none", limit},
	{"path-mode", "path_mode", "the `mode` of paths behind the alias: none, ignore or append", text},
}

func text(value string) (any, error)  { return value, nil }
func truth(value string) (any, error) { return strconv.ParseBool(value) }

func list(value string) (any, error) {
	if value == "" {
		return []string{}, nil
	}
	return strings.Split(value, ","), nil
}

func orNothing(value string) (any, error) {
	if value == nothing {
		return nil, nil
	}
	return value, nil
}

func limit(value string) (any, error) {
	if value == nothing {
		return nil, nil
	}
	return strconv.ParseInt(value, 10, 64)
}

// moment reads a time. One without an offset is in the local time zone, a day its beginning.
func moment(value string) (any, error) {
	if value == nothing {
		return nil, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04",
		time.DateOnly} {
		if at, err := time.ParseInLocation(layout, value, time.Local); err == nil {
			return at.Format(time.RFC3339), nil
		}
	}
	return nil, fmt.Errorf("%q is not a time such as 2030-01-31T18:00:00+01:00", value)
}

// addLinkFlags adds the flags that set fields of a link.
func addLinkFlags(cmd *cobra.Command) {
	for _, f := range linkFields {
		cmd.Flags().String(f.flag, "", f.usage)
	}
	cmd.Flags().Lookup("forward-query").NoOptDefVal = "true"
	cmd.Flags().StringArray("set", nil, "set another field of the API to a JSON value or a text: `FIELD=VALUE`")
}

// linkBody returns the fields that flags set.
func linkBody(cmd *cobra.Command) (map[string]any, error) {
	body := map[string]any{}
	for _, f := range linkFields {
		if flag := cmd.Flags().Lookup(f.flag); flag.Changed {
			value, err := f.parse(flag.Value.String())
			if err != nil {
				return nil, usagef("--%s: %w", f.flag, err)
			}
			body[f.field] = value
		}
	}
	others, err := cmd.Flags().GetStringArray("set")
	for _, other := range others {
		field, value, found := strings.Cut(other, "=")
		if !found {
			return nil, usagef("--set: %q is not FIELD=VALUE", other)
		}
		if body[field] = value; json.Valid([]byte(value)) {
			body[field] = json.RawMessage(value)
		}
	}
	return body, err
}

// encode returns a body of a request.
func encode(body any) *bytes.Reader {
	encoded, _ := json.Marshal(body) // texts, numbers and JSON can be encoded
	return bytes.NewReader(encoded)
}

// aboutLinks returns a command with arguments that are no files, and with --domain.
func aboutLinks(use, short string, args cobra.PositionalArgs, run func(*cobra.Command, []string) error) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: args, RunE: run, ValidArgsFunction: cobra.NoFileCompletions}
	cmd.Flags().String("domain", "", "the `host` of the domain; default for the service's own")
	return cmd
}

// domainID returns the id of the domain that --domain names, 0 for the default domain. given is false without --domain.
func (c *command) domainID(cmd *cobra.Command, api *client.Client) (id int64, given bool, err error) {
	host, err := cmd.Flags().GetString("domain")
	if err != nil || host == "" || host == defaultDomain {
		return 0, host != "", err
	}
	hosts, err := domains(cmd.Context(), api)
	if err != nil {
		return 0, false, err
	}
	for id, known := range hosts {
		if strings.EqualFold(host, known) {
			return id, true, nil
		}
	}
	return 0, false, usagef("--domain: the account has no domain %s", host)
}

// domains returns the hosts of the account's domains by id.
func domains(ctx context.Context, api *client.Client) (map[int64]string, error) {
	hosts := map[int64]string{}
	err := eachPage(func(page client.RequestEditorFn) (*http.Response, error) { return api.ListDomains(ctx, nil, page) },
		func(found []client.Domain) error {
			for _, d := range found {
				hosts[int64(d.Id)] = d.Host
			}
			return nil
		})
	return hosts, err
}

// eachPage calls do with the items of each page of a list.
func eachPage[T any](read func(page client.RequestEditorFn) (*http.Response, error), do func([]T) error) error {
	for page := int64(1); ; page++ {
		resp, err := read(query(url.Values{"page": {strconv.FormatInt(page, 10)}}))
		list, err := client.Read[struct {
			Data []T
			Meta client.PageMeta
		}](resp, err)
		if err != nil {
			return err
		}
		if err := do(list.Data); err != nil || page >= list.Meta.LastPage {
			return err
		}
	}
}

// eachAfter is eachPage by cursors: links that are made meanwhile move no other to another page.
func eachAfter[T any](read func(page client.RequestEditorFn) (*http.Response, error), do func([]T) error) error {
	for after := ""; ; {
		resp, err := read(query(url.Values{"limit": {"1000"}, "after": {after}}))
		list, err := client.Read[struct {
			Data []T
			Meta struct {
				Next     *string
				LastPage int64 `json:"last_page"`
			}
		}](resp, err)
		if err != nil {
			return err
		}
		if list.Meta.LastPage > 0 { // a service of 1.0.0 has no cursors
			return eachPage(read, do)
		}
		if err := do(list.Data); err != nil || list.Meta.Next == nil {
			return err
		}
		after = *list.Meta.Next
	}
}

// connectFor returns a client, and an editor that adds the domain of a command and the given parameters to requests.
func (c *command) connectFor(cmd *cobra.Command, names ...string) (*client.Client, client.RequestEditorFn, error) {
	api, err := c.connect()
	if err != nil {
		return nil, nil, err
	}
	values := parameters(cmd, names...)
	id, given, err := c.domainID(cmd, api)
	if given {
		values.Set("domain_id", strconv.FormatInt(id, 10))
	}
	return api, query(values), err
}

func (c *command) shortenCommand() *cobra.Command {
	cmd := aboutLinks("shorten URL", "Create a short link and print it", cobra.ExactArgs(1), c.shorten)
	addLinkFlags(cmd)
	cmd.Flags().String("alias", "", "the `end` of the short link; without it the service chooses one")
	return cmd
}

func (c *command) shorten(cmd *cobra.Command, args []string) error {
	body, err := linkBody(cmd)
	if err != nil {
		return err
	}
	api, err := c.connect()
	if err != nil {
		return err
	}
	id, _, err := c.domainID(cmd, api)
	if err != nil {
		return err
	}
	if id != 0 {
		body["domain_id"] = id
	}
	if alias := cmd.Flags().Lookup("alias"); alias.Changed {
		body["alias"] = alias.Value.String()
	}
	body["long_url"] = args[0]
	resp, err := api.CreateLinkWithBody(cmd.Context(), nil, jsonType, encode(body))
	return answer(c, resp, err, func(made client.CreatedLink) error { return c.print(cell(made.ShortUrl) + "\n") })
}

func (c *command) listCommand() *cobra.Command {
	all := false
	cmd := aboutLinks("list", "List links", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
		api, filter, err := c.connectFor(cmd, "q", "tag", "is_active", "deleted", "sort")
		if err != nil {
			return err
		}
		read := func(page client.RequestEditorFn) (*http.Response, error) {
			return api.ListLinks(cmd.Context(), nil, filter, page)
		}
		if sort, _ := cmd.Flags().GetString("sort"); all && strings.HasSuffix(sort, "clicks") { // an order without cursors
			return eachPage(read, c.printItems)
		}
		if all {
			return eachAfter(read, c.printItems)
		}
		resp, err := read(query(parameters(cmd, "page")))
		list, err := client.Read[struct{ Data []json.RawMessage }](resp, err)
		if err != nil {
			return err
		}
		return c.printItems(list.Data)
	})
	flags := cmd.Flags()
	addFilterFlags(cmd)
	addStateFlags(cmd)
	flags.String("sort", "", "the `order`: -created_at (the newest first), created_at, -clicks or clicks")
	flags.Int64("page", 1, "the `number` of the page")
	flags.BoolVar(&all, "all", false, "all pages")
	return cmd
}

func addFilterFlags(cmd *cobra.Command) {
	cmd.Flags().String("q", "", "only those with these `words` in their hash, long URL, title or tags")
	cmd.Flags().String("tag", "", "only those with this `tag`")
}

func addStateFlags(cmd *cobra.Command) {
	cmd.Flags().Bool("is-active", false, "only those that redirect, with =false the others")
	cmd.Flags().Bool("deleted", false, "those in the trash")
}

// printItems prints links of a list.
func (c *command) printItems(items []json.RawMessage) error {
	rows := make([][]string, len(items))
	for i, raw := range items {
		if c.json {
			if err := c.printJSON(raw); err != nil {
				return err
			}
			continue
		}
		var item client.LinkItem
		if err := json.Unmarshal(raw, &item); err != nil {
			return err
		}
		state := "on"
		if !item.IsActive {
			state = "off"
		}
		if item.DeletedAt != nil {
			state = "deleted " + c.when(*item.DeletedAt)
		}
		rows[i] = []string{item.Hash, strconv.FormatInt(item.Clicks, 10), state, c.when(item.CreatedAt), item.ShortUrl,
			item.OriginalUrl}
	}
	if c.json {
		return nil
	}
	return c.table([]string{"HASH", "CLICKS", "STATE", "CREATED", "SHORT URL", "LONG URL"}, rows)
}

// printLink prints the fields of a link.
func (c *command) printLink(answer struct{ Link json.RawMessage }) error {
	rows, err := fields(answer.Link)
	if err != nil {
		return err
	}
	return c.table(nil, rows)
}

// oneLink returns a command that calls an operation of a link and prints the link.
func oneLink[P any](c *command, use, short string, call func(*client.Client, context.Context, string, *P,
	...client.RequestEditorFn) (*http.Response, error)) *cobra.Command {
	return aboutLinks(use, short, cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
		api, domain, err := c.connectFor(cmd)
		if err != nil {
			return err
		}
		resp, err := call(api, cmd.Context(), args[0], nil, domain)
		return answer(c, resp, err, c.printLink)
	})
}

func (c *command) showCommand() *cobra.Command {
	return oneLink(c, "show HASH", "Print the fields of a link", (*client.Client).GetLink)
}

func (c *command) restoreCommand() *cobra.Command {
	return oneLink(c, "restore HASH", "Take a link back from the trash", (*client.Client).RestoreLink)
}

func (c *command) editCommand() *cobra.Command {
	cmd := aboutLinks("edit HASH", "Change fields of a link", cobra.ExactArgs(1), c.edit)
	cmd.Example = `  linkstream edit summer-sale --title "Summer sale" --tag sale,summer
  linkstream edit summer-sale --set is_active=false --set card=null`
	addLinkFlags(cmd)
	cmd.Flags().String("long-url", "", "the `URL` that it leads to")
	return cmd
}

func (c *command) edit(cmd *cobra.Command, args []string) error {
	body, err := linkBody(cmd)
	if err != nil {
		return err
	}
	if long := cmd.Flags().Lookup("long-url"); long.Changed {
		body["long_url"] = long.Value.String()
	}
	if len(body) == 0 {
		return usagef("name what to change, such as --title")
	}
	api, domain, err := c.connectFor(cmd)
	if err != nil {
		return err
	}
	resp, err := api.EditLinkWithBody(cmd.Context(), args[0], nil, jsonType, encode(body), domain)
	return answer(c, resp, err, c.printLink)
}

func (c *command) renameCommand() *cobra.Command {
	cmd := aboutLinks("rename HASH ALIAS", "Give a link another name; the one that it had goes on leading to it",
		cobra.ExactArgs(2), func(cmd *cobra.Command, args []string) error {
			api, domain, err := c.connectFor(cmd)
			if err != nil {
				return err
			}
			body := encode(map[string]any{"alias": args[1]})
			resp, err := api.EditLinkWithBody(cmd.Context(), args[0], nil, jsonType, body, domain)
			return answer(c, resp, err, c.printLink)
		})
	cmd.Example = "  linkstream rename spring-sale sale/2027"
	return cmd
}

func (c *command) deleteCommand() *cobra.Command {
	const short = "Move links to the trash, where they stay for 30 days"
	return aboutLinks("delete HASH…", short, cobra.MinimumNArgs(1), func(cmd *cobra.Command, args []string) error {
		api, domain, err := c.connectFor(cmd)
		for _, hash := range args {
			if err != nil {
				return err
			}
			resp, failed := api.DeleteLink(cmd.Context(), hash, nil, domain)
			err = answer(c, resp, failed, func(client.Done) error { return nil })
			if err != nil {
				err = fmt.Errorf("%s: %w", hash, err)
			}
		}
		return err
	})
}
