package rest

import (
	"encoding/json"
	"errors"
	"strconv"

	"github.com/valyala/fasthttp"

	"linkstream/api/clickreport"
	"linkstream/api/links"
	"linkstream/api/live"
)

// liveCounts is the data of an event.
type liveCounts struct {
	Hash         string  `json:"hash,omitempty"`
	TotalClicks  int64   `json:"total_clicks"`
	People       int64   `json:"people"`
	Bots         int64   `json:"bots"`
	CountedUntil *string `json:"counted_until"`
}

// streamRetryAfter is the Retry-After, in seconds, of a stream beyond the account's limit.
const streamRetryAfter = "5"

var errStreams = &httpError{status: fasthttp.StatusTooManyRequests, message: "Your account has " +
	strconv.Itoa(live.MaxStreams) +
	" live streams open, or too many links in them: close one first."}

// linkLive answers GET /api/v1/links/{hash}/live.
func (a *API) linkLive(c *call) error {
	link, err := a.ownedLink(c)
	if err != nil {
		return err
	}
	return a.stream(c, live.Topic{Account: c.account, Link: link.ID}, []int64{link.ID}, link.Hash)
}

// accountLive answers GET /api/v1/live.
func (a *API) accountLive(c *call) error {
	ids, invalid, err := a.reportLinks(c)
	switch {
	case err != nil:
		return err
	case invalid != nil:
		return links.InvalidFields(invalid.Fields)
	}
	topic, args := live.Topic{Account: c.account}, c.http.QueryArgs()
	if ids != nil {
		topic.Tag, topic.ByDomain = string(args.Peek(clickreport.FieldTag)), args.Has(clickreport.FieldDomain)
		// 0 without one; reportLinks has checked it
		topic.Domain, _ = strconv.ParseInt(string(args.Peek(clickreport.FieldDomain)), 10, 64)
	}
	return a.stream(c, topic, ids, "")
}

// stream answers with the counts of a topic, now and whenever they change.
func (a *API) stream(c *call, topic live.Topic, ids []int64, hash string) error {
	if c.http.IsHead() {
		live.SetHeaders(c.http)
		return nil
	}
	s, err := a.live.Open(c.ctx, topic, ids, live.Holder{Token: c.token})
	if errors.Is(err, live.ErrTooMany) {
		c.http.Response.Header.Set("Retry-After", streamRetryAfter)
		return errStreams
	}
	if err != nil {
		return withOutage(readingClicks, err)
	}
	s.Serve(c.http, func(dst []byte, counts live.Counts) ([]byte, string) { return appendCounts(dst, hash, counts) })
	return nil
}

func appendCounts(dst []byte, hash string, counts live.Counts) (data []byte, id string) {
	event := liveCounts{Hash: hash, TotalClicks: counts.Total(), People: counts.People, Bots: counts.Bots}
	if !counts.Until.IsZero() {
		id = formatTime(counts.Until)
		event.CountedUntil = &id
	}
	data, err := json.Marshal(event)
	if err != nil {
		panic(err) // it has strings and numbers only
	}
	return append(dst, data...), id
}
