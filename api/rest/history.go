package rest

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"github.com/valyala/fasthttp"

	"linkstream/api/links"
	"linkstream/api/request"
	"linkstream/schema"
)

// pathHistory is the path of the clicks on a link that another service has counted.
const pathHistory = pathLink + "/history/{source}"

// maxHistoryBody bounds the body of a history in bytes: its days, with room between them.
const maxHistoryBody = 1 << 20

const (
	fieldDays   = "days"
	fieldSource = "source"
)

// Messages for invalid histories.
const (
	badSource  = "The source must have 1 to 32 characters from a-z, 0-9, _ and -."
	badDays    = "The days must be an array of objects with a date and clicks."
	badDate    = "The date must be a day since 1970, such as 2026-01-31."
	futureDate = "The date must not be after today, in UTC."
	twiceDate  = "The date occurs twice."
)

var (
	manyDays  = fmt.Sprintf("There must be at most %d days.", schema.MaxHistoryDays)
	badClicks = fmt.Sprintf("The clicks must be an integer from 0 to %d.", schema.MaxImportedClicks)
)

func (a *API) routeHistory() {
	a.route(fasthttp.MethodPut, pathHistory, request.Writes, a.ofHistory(a.setHistory))
	a.route(fasthttp.MethodGet, pathHistory, request.Reads, a.ofHistory(a.readHistory))
	a.route(fasthttp.MethodDelete, pathHistory, request.Writes, a.ofHistory(a.deleteHistory))
}

// isHistory reports whether a path is of a history. The parts of an alias are separated by %2F there.
func isHistory(path string) bool {
	rest, found := strings.CutPrefix(path, pathLinks+"/")
	parts := strings.Split(rest, "/")
	return found && len(parts) == 3 && parts[1] == "history"
}

type historyAnswer struct {
	Success bool       `json:"success"`
	Source  string     `json:"source,omitempty"`
	Clicks  int64      `json:"clicks"`
	Days    []dayTotal `json:"days,omitzero"`
}

type dayTotal struct {
	Date   string `json:"date"`
	Clicks int64  `json:"clicks"`
}

// ofHistory lets handle answer for a source of the caller's link.
func (a *API) ofHistory(handle func(c *call, link schema.Link, source string) error) func(*call) error {
	return a.ofLink(func(c *call, link schema.Link) error {
		source, err := url.PathUnescape(c.http.UserValue(fieldSource).(string))
		if err != nil || !schema.ValidTag(source) {
			return invalidField(fieldSource, badSource)
		}
		return handle(c, link, source)
	})
}

// setHistory answers PUT /api/v1/links/{hash}/history/{source}.
func (a *API) setHistory(c *call, link schema.Link, source string) error {
	body, err := decodeBody(c)
	if err != nil {
		return err
	}
	days, problems := readDays(body.field(fieldDays), time.Now())
	if len(problems) > 0 {
		return links.InvalidFields(problems)
	}
	history := schema.History{AccountID: c.account, LinkID: link.ID, Source: source, Days: days}
	err = a.clicks.SetHistories(c.ctx, history)
	if schema.ErrorCode(err) == schema.CodeInvalid {
		return invalidField(fieldSource, schema.ErrManySources.Message)
	}
	if err != nil {
		return withOutage("Clicks cannot be changed", err)
	}
	return answer(c.http, fasthttp.StatusOK, historyAnswer{Success: true, Clicks: history.Total()})
}

// readHistory answers GET /api/v1/links/{hash}/history/{source}.
func (a *API) readHistory(c *call, link schema.Link, source string) error {
	history, err := a.clicks.Of(c.account).History(c.ctx, link.ID, source)
	if err != nil {
		return withOutage(readingClicks, ifMissing(err))
	}
	days := make([]dayTotal, len(history.Days))
	for i, day := range history.Days {
		days[i] = dayTotal{day.Date, day.Total}
	}
	return answer(c.http, fasthttp.StatusOK, historyAnswer{true, source, history.Total(), days})
}

// deleteHistory answers DELETE /api/v1/links/{hash}/history/{source}.
func (a *API) deleteHistory(c *call, link schema.Link, source string) error {
	if err := a.clicks.DeleteHistory(c.ctx, link.ID, source); err != nil {
		return withOutage("Clicks cannot be changed", ifMissing(err))
	}
	return answer(c.http, fasthttp.StatusOK, done{true})
}

// ifMissing returns the error for clients if a link does not have a source.
func ifMissing(err error) error {
	if schema.ErrorCode(err) == schema.CodeNotFound {
		return schema.ErrNoHistory
	}
	return err
}

// readDays returns the days of a history in their order, and the problems of its fields.
func readDays(text string, now time.Time) (days []schema.DayCount, problems map[string][]string) {
	problems = map[string][]string{}
	elements, isArray := appendElements(nil, text, schema.MaxHistoryDays)
	switch {
	case !isArray:
		problems[fieldDays] = []string{badDays}
		return nil, problems
	case len(elements) > schema.MaxHistoryDays:
		problems[fieldDays] = []string{manyDays}
		return nil, problems
	}
	today, seen := now.UTC().Format(time.DateOnly), make(map[string]bool, len(elements))
	for i, element := range elements {
		reject := func(field, problem string) {
			problems[fmt.Sprintf("%s.%d%s", fieldDays, i, field)] = []string{problem}
		}
		if !gjson.Parse(element).IsObject() {
			reject("", badDays)
			continue
		}
		date, clicks := gjson.Get(element, "date"), gjson.Get(element, "clicks")
		day, err := time.Parse(time.DateOnly, date.Str)
		switch {
		case err != nil || day.Unix() < 0:
			reject(".date", badDate)
		case date.Str > today:
			reject(".date", futureDate)
		case seen[date.Str]:
			reject(".date", twiceDate)
		}
		total, err := strconv.ParseInt(clicks.Raw, 10, 64)
		if err != nil || total < 0 || total > schema.MaxImportedClicks {
			reject(".clicks", badClicks)
		}
		seen[date.Str] = true
		days = append(days, schema.DayCount{Date: date.Str, Total: total})
	}
	slices.SortFunc(days, func(x, y schema.DayCount) int { return cmp.Compare(x.Date, y.Date) })
	return days, problems
}
