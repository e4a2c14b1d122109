package scenario

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"linkstream/bench/contender"
	"linkstream/bench/load"
	"linkstream/bench/system"
	"linkstream/bench/workload"
	"linkstream/schema"
)

// hotShare is the share of the clicks on one link, in addition to its share by Zipf's law.
const hotShare = 0.4

// readConns is how many calls are made at the same time, unless -conns says otherwise: the reader of a page makes few.
const readConns = 2

// runRead measures statistics, reports and lists of an account with -clicks on -links in the last 30 days. The cost of
// a call includes the click store's.
func runRead(ctx context.Context, r *run) error {
	r.cfg.unlessSet("conns", func() { r.cfg.Conns = readConns })
	h := workload.NewHistory(workload.NewLinks(r.cfg.Links), hotShare)
	service, err := r.open(ctx, h.Links, func(ctx context.Context, on system.Engines) error {
		return r.store(ctx, on, h, r.cfg.Clicks)
	})
	if err != nil {
		return err
	}
	for _, group := range []struct {
		op    string
		calls []call
	}{{"stats call", statsCalls(h)}, {"report", reportCalls(h, r.cfg.System.Start)}, {"list call", listCalls(h.Links)}} {
		var contenders []*contender.Contender
		refused := make([]atomic.Int64, len(group.calls))
		for i, one := range group.calls {
			c := r.called(one.name, service, func(int) load.Source {
				request, check := one.start()
				return &callLoad{api: service.API, request: request, check: check, refused: &refused[i]}
			})
			if service.Engines != nil {
				c.AddStore(service.Engines.ClickProcesses())
			}
			contenders = append(contenders, c)
		}
		if err := r.closedLoop(ctx, group.op, contenders); err != nil {
			return err
		}
		for _, c := range contenders { // each at half of its own rate, since they are different calls
			if err := r.openLoop(ctx, group.op, []*contender.Contender{c}); err != nil {
				return err
			}
		}
		for i, one := range group.calls {
			r.check(group.op+"s refused by a busy service: "+one.name, 0, refused[i].Load())
		}
	}
	return nil
}

// call is a GET of the API. start returns the path of the next request, and the check of its answer, for one
// connection.
type call struct {
	name  string
	start func() (request func(dst []byte) []byte, check func(body []byte) error)
}

// callLoad makes the same call again and again.
type callLoad struct {
	api     *system.API
	request func(dst []byte) []byte
	check   func(body []byte) error
	refused *atomic.Int64 // answers with status 503
	path    []byte        // scratch
}

// Append implements load.Source.
func (c *callLoad) Append(dst []byte) []byte {
	c.path = c.request(c.path[:0])
	return c.api.AppendRequest(dst, http.MethodGet, string(c.path), nil)
}

// Check implements load.Source.
func (c *callLoad) Check(a load.Answer) error {
	switch a.Status {
	case http.StatusOK:
		return c.check(a.Body)
	case http.StatusServiceUnavailable:
		c.refused.Add(1)
		return nil
	}
	return system.StatusError(a)
}

// ofLink returns a call about a link whose answer has a number of clicks after key.
func ofLink(name string, h *workload.History, next func() func() int, before, after, key string,
	right func(got, clicks int64) bool) call {
	return call{name, func() (func([]byte) []byte, func([]byte) error) {
		choose, link := next(), 0
		request := func(dst []byte) []byte {
			link = choose()
			return append(h.Links.AppendHash(append(dst, before...), link), after...)
		}
		return request, func(body []byte) error {
			got, err := firstNumber(body, key)
			if err == nil && !right(got, h.Clicks[link]) {
				err = fmt.Errorf("link %q has %d clicks, the answer says %d", h.Links.Hash(link), h.Clicks[link], got)
			}
			return err
		}
	}}
}

func equal(got, want int64) bool { return got == want }

func statsCalls(h *workload.History) []call {
	const path, key = "/api/v1/stats/", `"total_clicks":`
	return []call{
		ofLink("statistics, any link", h, h.AnyLink, path, "", key, equal),
		ofLink("statistics, most popular link", h, h.TheMostVisited, path, "", key, equal),
	}
}

// reportCalls returns reports of the whole history. Without stored clicks there is nothing to filter.
func reportCalls(h *workload.History, stored bool) []call {
	const path, key = "/api/v1/links/", `"totals":{"clicks":`
	month := wholeMonth(h.Begin())
	calls := []call{
		ofLink("month, any link", h, h.AnyLink, path, "/report"+month, key, equal),
		ofLink("month, most popular link", h, h.TheMostVisited, path, "/report"+month, key, equal),
	}
	if !stored {
		return calls
	}
	some := func(got, clicks int64) bool { return 0 < got && got < clicks }
	var all int64
	for _, n := range h.Clicks {
		all += n
	}
	account := call{"month, account", func() (func([]byte) []byte, func([]byte) error) {
		return func(dst []byte) []byte { return append(dst, "/api/v1/report"+month...) }, func(body []byte) error {
			got, err := firstNumber(body, key)
			if err == nil && got != all {
				err = fmt.Errorf("the account has %d clicks, the answer says %d", all, got)
			}
			return err
		}
	}}
	return append(calls, account,
		ofLink("month by mobile devices, most popular link", h, h.TheMostVisited, path,
			"/report"+month+"&device=mobile", key, some))
}

// wholeMonth returns the query string of a report from begin until now.
func wholeMonth(begin time.Time) string {
	return fmt.Sprintf("?from=%s&to=%s", begin.Format(time.DateOnly),
		time.Now().UTC().AddDate(0, 0, 1).Format(time.DateOnly))
}

func listCalls(links workload.Links) (calls []call) {
	last := max(1, links.Count/schema.PageSize) // the last full page
	page := func(name, query string, first int) call {
		want := fmt.Appendf(nil, `[{"hash":%q`, links.Hash(first))
		return call{name, func() (func([]byte) []byte, func([]byte) error) {
			return func(dst []byte) []byte { return append(append(dst, "/api/v1/links?"...), query...) },
				func(body []byte) error {
					if !bytes.Contains(body, want) {
						return fmt.Errorf("%s: %s is missing: %.200s", name, want, body)
					}
					return nil
				}
		}}
	}
	return []call{
		page("first page", "page=1", links.Count-1),
		page("last page", fmt.Sprint("page=", last), links.Count-1-(last-1)*schema.PageSize),
		page("search", "q="+links.Hash(0), 0),
	}
}

// firstNumber returns the number after the first occurrence of key in a JSON text.
func firstNumber(text []byte, key string) (int64, error) {
	_, rest, found := bytes.Cut(text, []byte(key))
	digits := bytes.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if !found || digits <= 0 {
		return 0, fmt.Errorf("no number follows %s in %.200s", key, text)
	}
	return strconv.ParseInt(string(rest[:digits]), 10, 64)
}
