package resolve

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema"
	"linkstream/schema/service"
)

// Bounds of the queries for links under way.
const (
	linksPerQuery  = 256 // at least, if so many wait; a look-up asks for up to maxNames links
	linkQueries    = 4
	suspectQueries = 1        // for clients that have just asked for keys that do not exist
	maxWaiting     = 64 << 10 // look-ups; the server's connections are fewer
	// gather is the minimum interval between the starts of concurrent queries: with a shorter one they would carry too few
	// look-ups to be worth their cost.
	gather = 500 * time.Microsecond
)

var (
	errCrowded = errors.New("too many look-ups are waiting")
	errTooLate = errors.New("the link store has not answered in time")
)

// linkQuery looks up many links at a time. A look-up begins a query at once if none is under way. Look-ups that come
// during a query share the next one, which begins after gather, even if the first one is still under way. So the
// busier the edge, the fewer queries per link. A look-up costs neither a goroutine nor a timer.
type linkQuery struct {
	links   linkStore
	cache   *cache[linkIDs]
	limiter *limiter
	lines   [2]line // ordinary look-ups, and those of suspects, which never delay the others
	queries *metrics.Counter
	running sync.WaitGroup // goroutines that ask the store
}

// The numbers of lines.
const (
	ordinary = iota
	suspects
)

// line is look-ups in the order in which they began, and the queries that they are in.
type line struct {
	parallel int // queries at a time

	mu        sync.Mutex
	waiting   []*flight[linkIDs]
	running   int                  // goroutines
	gathering bool                 // one of them is about to take a batch
	last      time.Time            // when a batch was taken
	asked     [][]*flight[linkIDs] // by queries under way
	timer     *time.Timer          // runs while any look-up is under way; nil before the first one
	timed     bool
	closed    bool
}

func newLinkQuery(links linkStore, c *cache[linkIDs], set *metrics.Set) *linkQuery {
	q := &linkQuery{links: links, cache: c, limiter: c.limiter,
		queries: service.NewCounter(set, "linkstream_edge_link_queries_total",
			"Queries in which links were looked up, up to 256 in each.")}
	q.lines[ordinary].parallel, q.lines[suspects].parallel = linkQueries, suspectQueries
	return q
}

// begin is a cache's begin for links. It does not wait.
func (q *linkQuery) begin(f *flight[linkIDs]) {
	l := &q.lines[ordinary]
	if f.suspect {
		l = &q.lines[suspects]
	}
	l.mu.Lock()
	if l.closed || len(l.waiting) >= maxWaiting {
		l.mu.Unlock()
		q.fail([]*flight[linkIDs]{f}, errCrowded)
		return
	}
	l.waiting = append(l.waiting, f)
	if !l.timed {
		l.timed = true
		q.setTimer(l, q.limiter.timeout)
	}
	q.start(l)
	l.mu.Unlock()
}

// start starts a goroutine that asks the store for the waiting look-ups, if there is room for it. The caller holds
// l.mu.
func (q *linkQuery) start(l *line) {
	if len(l.waiting) > 0 && !l.gathering && l.running < l.parallel {
		l.gathering = true
		l.running++
		q.running.Add(1)
		go q.run(l)
	}
}

// run asks the store until no look-up waits, or another goroutine is about to take the waiting ones.
func (q *linkQuery) run(l *line) {
	defer q.running.Done()
	for {
		runtime.Gosched() // so that look-ups that are about to begin join
		batch, wait := q.take(l)
		if wait > 0 {
			time.Sleep(wait)
			continue
		}
		if len(batch) > 0 {
			q.lookUp(l, batch)
		}
		if !l.goOn() {
			return
		}
	}
}

// lookUp looks up a batch, and ends it.
func (q *linkQuery) lookUp(l *line, batch []*flight[linkIDs]) {
	// Each look-up has a deadline of its own; the query ends at the last one: see expire.
	ctx, cancel := context.WithDeadline(q.limiter.ctx, batch[len(batch)-1].began.Add(q.limiter.timeout))
	defer cancel()
	found, err := q.ask(ctx, batch)
	batch = l.finish(batch)
	if err != nil {
		q.fail(batch, err)
	} else {
		q.publish(batch, found)
	}
}

// take removes the next batch from the line, perhaps an empty one, or returns how long it has to wait. Another
// goroutine takes the rest.
func (q *linkQuery) take(l *line) (batch []*flight[linkIDs], wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, links := 0, 0
	for n < len(l.waiting) && links < linksPerQuery {
		l.waiting[n].number = links
		links += countNames(l.waiting[n].question)
		n++
	}
	now := time.Now()
	if wait = gather - now.Sub(l.last); wait > 0 && len(l.asked) > 0 && 0 < n && links < linksPerQuery {
		return nil, wait
	}
	l.gathering = false
	if n == 0 {
		return nil, 0
	}
	batch = slices.Clone(l.waiting[:n])
	l.waiting = slices.Delete(l.waiting, 0, n)
	l.asked = append(l.asked, batch)
	l.last = now
	q.start(l)
	return batch, 0
}

// goOn reports whether the calling goroutine takes the next batch. If not, it must end.
func (l *line) goOn() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 || l.gathering {
		l.running--
		return false
	}
	l.gathering = true
	return true
}

// finish returns the look-ups of a batch that have not expired. The query decides their outcome.
func (l *line) finish(batch []*flight[linkIDs]) []*flight[linkIDs] {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = slices.DeleteFunc(l.asked, func(b []*flight[linkIDs]) bool { return b[0] == batch[0] })
	return slices.DeleteFunc(batch, func(f *flight[linkIDs]) bool { return f.expired })
}

// ask returns what the store has for each of a batch. It turns a panic into an error.
func (q *linkQuery) ask(ctx context.Context, batch []*flight[linkIDs]) (found []schema.EdgeLink, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = schema.Errorf(schema.CodeInternal, "panic: %v\n%s", cause, debug.Stack())
		}
	}()
	q.queries.Inc()
	keys := make([]schema.LinkKey, 0, len(batch))
	for _, f := range batch {
		domainID := int64(binary.BigEndian.Uint64([]byte(f.question[:8])))
		for name := range names(f.question) {
			keys = append(keys, schema.LinkKey{DomainID: domainID, Hash: name})
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	found, err = q.links.EdgeLinks(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("look up %d links: %w", len(keys), err)
	}
	return found, nil
}

// publish ends a batch whose links were found, or not.
func (q *linkQuery) publish(batch []*flight[linkIDs], found []schema.EdgeLink) {
	p := new(publishing)
	for _, f := range batch {
		p.publish(q.cache, f, found)
	}
	q.end(batch)
}

// publishing is memory for publish.
type publishing struct {
	answer []byte
	absent [][]byte
	keys   [maxNames]linkKey
}

// publish makes what was found for a flight its result: the first of its links that answers its question.
func (p *publishing) publish(c *cache[linkIDs], f *flight[linkIDs], found []schema.EdgeLink) {
	p.absent = p.absent[:0]
	i := -1
	for name, mark := range names(f.question) {
		i++
		d := &found[f.number+i]
		key := append(append(p.keys[i][:0], f.question[:8]...), name...)
		if d.LinkID == 0 || d.Stopped == schema.HostLost { // the host has another owner now, with other links
			p.absent = append(p.absent, key)
			continue
		}
		if paths := pathsOf(d); answers(paths, mark) {
			p.answer = appendAnswer(p.answer[:0], d)
			e := newEntry(linkIDs{d.LinkID, d.AccountID}, key, p.answer)
			e.paths = paths
			c.publish(f, e, i, p.absent...)
			return
		}
	}
	c.publishNone(f, p.absent...)
}

// fail ends look-ups that have no outcome.
func (q *linkQuery) fail(batch []*flight[linkIDs], cause error) {
	for _, f := range batch {
		f.err = errUnavailable
		q.limiter.report(fmt.Errorf("look up link %q: %w", firstName(f.question), cause))
	}
	q.end(batch)
}

func (q *linkQuery) end(batch []*flight[linkIDs]) {
	for _, f := range batch {
		q.limiter.seconds.Observe(time.Since(f.began))
	}
	q.cache.end(batch)
}

// setTimer sets the timer that calls expire. The caller holds l.mu.
func (q *linkQuery) setTimer(l *line, after time.Duration) {
	if l.timer == nil {
		l.timer = time.AfterFunc(after, func() { q.expire(l) })
	} else {
		l.timer.Reset(after)
	}
}

// expire ends the look-ups of a line whose time is over, and sets the timer for the oldest of the others. So a timer
// is set about once per timeout, however many look-ups there are.
func (q *linkQuery) expire(l *line) {
	now := time.Now()
	oldest := now
	var expired []*flight[linkIDs]
	expires := func(f *flight[linkIDs]) bool {
		if now.Sub(f.began) < q.limiter.timeout {
			if f.began.Before(oldest) {
				oldest = f.began
			}
			return false
		}
		if !f.expired {
			f.expired = true
			expired = append(expired, f)
		}
		return true
	}
	l.mu.Lock()
	l.waiting = slices.DeleteFunc(l.waiting, expires)
	for _, batch := range l.asked {
		for _, f := range batch {
			expires(f)
		}
	}
	if l.timed = len(l.waiting)+len(l.asked) > 0 && !l.closed; l.timed {
		q.setTimer(l, max(time.Millisecond, q.limiter.timeout-now.Sub(oldest)))
	}
	l.mu.Unlock()
	if len(expired) > 0 {
		q.fail(expired, errTooLate)
	}
}

// close waits for the look-ups under way, which the limiter has canceled. Later ones fail.
func (q *linkQuery) close() {
	for i := range q.lines {
		l := &q.lines[i]
		l.mu.Lock()
		l.closed = true
		if l.timer != nil {
			l.timer.Stop()
		}
		l.mu.Unlock()
	}
	q.running.Wait()
}
