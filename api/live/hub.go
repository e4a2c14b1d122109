// Package live sends the clicks of links to clients while they are counted, as server-sent events.
//
// A topic is what one or more streams show: the clicks of a link, or of some or all links of an account. The hub
// reads the counts of all topics with one query per period, however many streams they have, and tells a stream only
// that its topic has changed. So a stream that is slow skips states and takes no memory. Without streams the hub does
// nothing.
package live

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema"
	"linkstream/schema/service"
	"linkstream/schema/turns"
)

const (
	// countEvery is the period of reading counts: with the time of the query, an event is sent within a second of its
	// change.
	countEvery = 900 * time.Millisecond
	// checkEvery is the period of checks whether tokens and sessions are still valid.
	checkEvery = 500 * time.Millisecond
	// earlyPause is the least time between two early reads for new topics.
	earlyPause = 20 * time.Millisecond
	// failPause is the time after a failed read in which no other begins.
	failPause = 5 * time.Second
	// selectEvery is how often the links of a topic are read again while nothing is counted for its account.
	selectEvery = 5 * time.Second
	callTimeout = 5 * time.Second // of one call to a store
)

// Limits of the streams of one process. Processes share no count, because it would still hold the streams of a killed
// process and refuse its clients when they connect again.
const (
	MaxStreams        = 10                         // of an account
	maxLinksOfAccount = 2 * schema.MaxReportLinks  // in all its topics together
	maxLinks          = 20 * schema.MaxReportLinks // of all accounts
)

var (
	// ErrTooMany means that the account has MaxStreams open streams, or too many links in them.
	ErrTooMany = errors.New("too many live streams of the account")
	errFull    = schema.ClientErrorf(schema.CodeBusy, "Too many live streams at the moment: try again later.")
	errStopped = schema.ClientErrorf(schema.CodeBusy, "The service is stopping: try again in a moment.")
)

// Topic says which links a stream counts: Link, or all links of the account with the tag and on the domain, if they
// are set.
type Topic struct {
	Account int64
	Link    int64 // 0: any link
	Tag     string
	Domain  int64 // 0: the default one
	// ByDomain limits the topic to links on Domain.
	ByDomain bool
}

func (t Topic) ofAccount() bool { return t.Link == 0 && t.Tag == "" && !t.ByDomain }

// Holder is the ID of the API token or of the session with which a stream was opened.
type Holder struct{ Token, Session int64 }

// Counts are the clicks of a topic.
type Counts struct {
	schema.Period
	Until time.Time // all clicks until then are counted; zero if that is not known
}

type clickStore interface {
	ClickTotals(ctx context.Context, links, accounts []int64) (ofLinks, ofAccounts map[int64]schema.Period, err error)
}

type linkStore interface {
	LinkIDs(ctx context.Context, accountID int64, filter schema.LinkFilter, limit int) ([]int64, error)
	LinksByID(ctx context.Context, accountID int64, ids []int64) ([]schema.Link, error)
	ValidTokens(ctx context.Context, ids []int64) ([]int64, error)
	ValidSessions(ctx context.Context, ids []int64, now time.Time) ([]int64, error)
}

// Hub has all streams of a process. Its methods may be called concurrently.
type Hub struct {
	clicks        clickStore
	links         linkStore
	countedUntil  func(context.Context) (time.Time, bool)
	open, counted *turns.Bound // streams, and links of their topics
	log           *slog.Logger
	early, begun  chan struct{}  // signals: a topic lacks counts; the first stream was opened
	writers       sync.WaitGroup // has the streams that are not closed

	mu      sync.Mutex
	stopped bool
	topics  map[Topic]*topic
	streams map[*Stream]struct{}
}

// topic is a Topic with streams. The hub's mutex guards it.
type topic struct {
	Topic
	links   []int64 // empty for all links of the account
	streams map[*Stream]struct{}
	ready   chan struct{} // closed with the first counts, or err
	known   bool          // counts are there
	err     error
	counts  Counts
	stale   bool          // links have changed since the counts were read
	owned   schema.Period // clicks of the account, unless the topic is a link
	moved   bool          // owned has changed since links were read, so the account may have new links
	reading bool          // links are being read
}

// NewHub returns a hub with at most max streams. countedUntil returns the time up to which all clicks are counted;
// false if that is not known.
func NewHub(
	clicks clickStore, links linkStore, countedUntil func(context.Context) (time.Time, bool), max int, set *metrics.Set,
	log *slog.Logger,
) *Hub {
	h := &Hub{clicks: clicks, links: links, countedUntil: countedUntil, log: log,
		open: turns.NewBound(max, MaxStreams), counted: turns.NewBound(maxLinks, maxLinksOfAccount),
		early: make(chan struct{}, 1), begun: make(chan struct{}, 1),
		topics: map[Topic]*topic{}, streams: map[*Stream]struct{}{}}
	const open = "linkstream_api_live_streams"
	service.Describe(set, open, "Open streams of live counts.")
	set.NewGauge(open, func() float64 {
		h.mu.Lock()
		defer h.mu.Unlock()
		return float64(len(h.streams))
	})
	return h
}

// Open returns a stream of a topic, whose counts are known. links are the links of the topic; they are ignored if it
// is all of an account. It returns ErrTooMany, CodeBusy if the process has too many streams, or the error of the
// click store. The caller must call Close, or Serve.
func (h *Hub) Open(ctx context.Context, of Topic, links []int64, holder Holder) (*Stream, error) {
	s, err := h.enter(of, links, holder)
	if err != nil {
		return nil, err
	}
	select {
	case <-s.topic.ready:
		h.mu.Lock()
		err = s.topic.err
		h.mu.Unlock()
	case <-ctx.Done():
		err = schema.Errorf(schema.CodeUnavailable, "wait for live counts: %w", ctx.Err())
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (h *Hub) enter(of Topic, links []int64, holder Holder) (*Stream, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[of]
	isNew := t == nil || t.err != nil
	if isNew {
		t = &topic{Topic: of, links: links, streams: map[*Stream]struct{}{}, ready: make(chan struct{})}
	}
	if h.stopped {
		return nil, errStopped
	}
	account := turns.Account(of.Account)
	if err := h.open.Take(account, 1); err != nil {
		return nil, refusal(err)
	}
	if isNew {
		if err := h.counted.Take(account, len(links)); err != nil {
			h.open.Leave(account, 1)
			return nil, refusal(err)
		}
		h.topics[of] = t
		notify(h.early)
	}
	s := &Stream{hub: h, topic: t, holder: holder, changed: make(chan struct{}, 1), ended: make(chan struct{})}
	if len(h.streams) == 0 {
		notify(h.begun)
	}
	t.streams[s], h.streams[s] = struct{}{}, struct{}{}
	h.writers.Add(1)
	return s, nil
}

// refusal returns the error of Open for an error of a bound.
func refusal(err error) error {
	if errors.Is(err, turns.ErrEach) {
		return ErrTooMany
	}
	return errFull
}

// leave ends the counting of a stream, and of its topic with the last one. The caller holds mu.
func (h *Hub) leave(s *Stream) {
	if _, open := h.streams[s]; !open {
		return
	}
	close(s.ended)
	delete(h.streams, s)
	t := s.topic
	if delete(t.streams, s); len(t.streams) == 0 {
		if h.topics[t.Topic] == t {
			delete(h.topics, t.Topic)
		}
		h.counted.Leave(turns.Account(t.Account), len(t.links))
		t.links = nil
	}
	h.open.Leave(turns.Account(t.Account), 1)
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run reads counts and checks holders until ctx is done. Then it ends all streams and waits until their last bytes
// are written.
func (h *Hub) Run(ctx context.Context) {
	var loops sync.WaitGroup
	loops.Go(func() { h.countLoop(ctx) })
	loops.Go(func() { h.checkLoop(ctx) })
	loops.Wait()
	h.mu.Lock()
	h.stopped = true
	for s := range h.streams {
		h.leave(s)
	}
	h.mu.Unlock()
	h.writers.Wait()
}

func (h *Hub) idle() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.streams) == 0
}
