package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"linkstream/api/client"
)

func (c *command) watchCommand() *cobra.Command {
	const short = "Print the clicks of a link, or of all, as they are counted"
	cmd := aboutLinks("watch [HASH]", short, cobra.MaximumNArgs(1), c.watch)
	cmd.Long = short + `: the time, and how many there are of all,
of people and of bots. It goes on until it is interrupted, and connects again when the service is restarted.`
	cmd.Flags().String("tag", "", "only links with this `tag`")
	return cmd
}

func (c *command) watch(cmd *cobra.Command, args []string) error {
	api, ask, err := c.connectFor(cmd, "tag")
	if err != nil {
		return err
	}
	ctx, last := cmd.Context(), int64(-1)
	for counts, err := range client.Watch(ctx, func() (*http.Response, error) {
		if len(args) == 0 {
			return api.AccountLive(ctx, nil, ask)
		}
		return api.LinkLive(ctx, args[0], nil, ask)
	}) {
		if err == nil && counts.TotalClicks == last {
			continue // the first state after it has connected again
		}
		if last = counts.TotalClicks; err == nil {
			err = c.printCounts(counts)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *command) printCounts(counts client.LiveCounts) error {
	if c.json {
		line, err := json.Marshal(counts)
		if err != nil {
			return err
		}
		return c.printJSON(line)
	}
	at := time.Now()
	if counts.CountedUntil != nil {
		at = *counts.CountedUntil
	}
	when := at.Format(time.RFC3339)
	if c.terminal {
		when = at.Local().Format(time.TimeOnly)
	}
	row := []string{when, fmt.Sprint(counts.TotalClicks), fmt.Sprint(counts.People), fmt.Sprint(counts.Bots)}
	if c.terminal {
		for i, of := range []string{"", " clicks", " people", " bots"} {
			row[i] += of
		}
	}
	return c.table(nil, [][]string{row})
}
