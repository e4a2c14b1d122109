package dashboard

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"html/template"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/api/live"
)

// A page shows clicks soon after they were counted: the script asks for the part of the page that has them when a
// stream tells that they have changed, and without the stream as often as the page says. The page carries the tag of
// its part, so that already the first poll is answered with 304 if nothing has changed.

// How often the script polls a report, by its number of days. The cost of the query is proportional to that number.
const (
	pollOften, oftenDays         = time.Second, 90
	pollSometimes, sometimesDays = 5 * time.Second, 400
	pollRarely                   = 15 * time.Second
)

// pollEvery returns how often the script polls a report over a number of days.
func pollEvery(days int) time.Duration {
	switch {
	case days <= oftenDays:
		return pollOften
	case days <= sometimesDays:
		return pollSometimes
	}
	return pollRarely
}

// livePage is the data of a page with a part that the script polls.
type livePage interface {
	// live returns the name of the part's template, its path, and how often the script asks for it. The path is "" if the
	// page does not have the part.
	live() (part, path string, every time.Duration)
}

// streamPage is a livePage whose part changes with the clicks of links.
type streamPage interface {
	livePage
	stream() (link string) // the ID of the link, "" for all links of the account
}

// countsPage is a livePage that shows the numbers of its part in places of its own: the part is rendered only when they
// have changed.
type countsPage interface {
	livePage
	counts() []byte // what the part has, in any form
}

// livePart is the part of a page that the script polls.
type livePart struct {
	Path    string
	Streams bool          // pathStream tells when clicks have been counted
	Link    string        // the ID of the stream's link; "" for all links
	HTML    template.HTML // what the page shows at first; a countsPage has none
	Tag     string        // the ETag of the part
	Every   int64         // milliseconds
	Now     template.HTML // when the part was read
}

const (
	ofLink = "link" // parameter of pathStream: the ID of a link
)

// answerStream sends the script of a page an event whenever clicks have been counted. The page has the counts.
func (d *Dashboard) answerStream(c *call) error {
	topic, links := live.Topic{Account: c.account.ID, Link: parseID(c.query(ofLink))}, []int64(nil)
	if c.query(ofLink) != "" {
		links = []int64{topic.Link}
		found, err := d.DB.LinksByID(c.ctx, c.account.ID, links)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return errNoPage
		}
	}
	if c.http.IsHead() {
		live.SetHeaders(c.http)
		return nil
	}
	s, err := d.Live.Open(c.ctx, topic, links, live.Holder{Session: c.session.ID})
	if errors.Is(err, live.ErrTooMany) {
		c.answer(fasthttp.StatusTooManyRequests, nil) // the script polls
		return nil
	}
	if err != nil {
		return ofClicks(err)
	}
	s.Serve(c.http, func(dst []byte, _ live.Counts) ([]byte, string) { return dst, "" })
	return nil
}

// addLive renders the part that the script polls.
func (d *Dashboard) addLive(v *view, page string) error {
	from, ok := v.Data.(livePage)
	if !ok {
		return nil
	}
	part, path, every := from.live()
	if path == "" {
		return nil
	}
	v.Live = &livePart{Path: path, Every: every.Milliseconds(), Now: timeElement(d.now().In(v.Zone))}
	if p, ok := from.(streamPage); ok {
		v.Live.Streams, v.Live.Link = true, p.stream()
	}
	if p, ok := from.(countsPage); ok {
		v.Live.Tag = tagOf(p.counts())
		return nil
	}
	html, err := d.html(page, part, *v)
	v.Live.HTML, v.Live.Tag = template.HTML(html), tagOf(html)
	return err
}

// renderLive answers with the page, or with the part that the script polls if the request asks for it. The answer is
// 304 if the part has not changed (RFC 9110, section 13.1.2).
func (d *Dashboard) renderLive(c *call, page string, data livePage) error {
	part, path, _ := data.live()
	if c.query("part") != part || path == "" {
		return d.render(c, page, data)
	}
	counts, ok := data.(countsPage)
	if ok && c.unchanged(tagOf(counts.counts())) {
		return nil
	}
	html, err := d.html(page, part, d.view(c, data, nil))
	if err != nil {
		return err
	}
	c.answer(fasthttp.StatusOK, html)
	if !ok {
		c.unchanged(tagOf(html))
	}
	return nil
}

// unchanged sets the ETag of the answer. If the client has it already, the answer is 304.
func (c *call) unchanged(tag string) bool {
	c.http.Response.Header.Set(fasthttp.HeaderETag, tag)
	if string(c.http.Request.Header.Peek(fasthttp.HeaderIfNoneMatch)) != tag {
		return false
	}
	c.answer(fasthttp.StatusNotModified, nil)
	return true
}

// tagOf returns the ETag of a part. It is weak, since the part may be compressed or not.
func tagOf(part []byte) string {
	digest := sha256.Sum256(part)
	return `W/"` + hex.EncodeToString(digest[:12]) + `"`
}
