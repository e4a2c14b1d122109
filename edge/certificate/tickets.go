package certificate

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema/service"
)

const (
	ticketFile  = "tickets/keys" // in the link store, encrypted as the keys of certificates are
	ticketLock  = "tickets"
	ticketSize  = 32             // bytes of a key
	ticketUse   = 12 * time.Hour // during which a key encrypts new tickets
	ticketsKept = 3              // keys that decrypt tickets: the one in use and those before it
	ticketLife  = ticketsKept * ticketUse
	// ticketLead is the time between storing a key and using it, in which every edge reads it.
	ticketLead  = 10 * time.Minute
	ticketLook  = 2 * time.Minute // between two reads of the store
	ticketRetry = 2 * time.Second // the same, as long as there is no key
)

// tickets gives all edges the same keys for session tickets (RFC 8446, section 4.6.1; RFC 5077), so that any edge
// can resume a visitor's TLS session, also after a restart. Every ticketUse one edge, under a lock, adds a key and
// deletes those older than ticketLife. Tickets of a deleted key do not resume, and somebody who obtains the store
// and its secret later cannot decrypt old connections. Keys are never logged.
type tickets struct {
	files  *storage
	config *tls.Config
	log    *slog.Logger

	mu   sync.Mutex
	keys []ticketKey // the newest first; empty: Go's own keys are in use
}

// ticketKey encrypts tickets from From until the next key takes over.
type ticketKey struct {
	From time.Time `json:"from"`
	Key  []byte    `json:"key"`
}

func newTickets(files *storage, config *tls.Config, set *metrics.Set, log *slog.Logger) *tickets {
	t := &tickets{files: files, config: config, log: log}
	service.NewGauge(set, "linkstream_edge_tls_ticket_key_timestamp_seconds",
		"Unix time since which all edges use the key of session tickets; 0 while this edge uses its own.", func() float64 {
			if since := t.since(time.Now()); !since.IsZero() {
				return float64(since.Unix())
			}
			return 0
		})
	return t
}

// run keeps the keys up to date until ctx is done. It logs one warning for each time that the store is away.
func (t *tickets) run(ctx context.Context) {
	for away := false; ; {
		err := t.update(ctx, time.Now())
		if ctx.Err() != nil {
			return
		}
		if err != nil && !away {
			t.log.Warn("cannot share the keys of TLS session tickets, retrying", "error", err)
		}
		away = err != nil
		wait := ticketLook
		if t.since(time.Now()).IsZero() {
			wait = ticketRetry
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// update sets the keys that are in the store, and adds a key when one is due. While the store is away, the edge
// continues with its known keys and adds keys of its own when they are due.
func (t *tickets) update(ctx context.Context, now time.Time) error {
	keys, err := t.load(ctx)
	if err == nil && due(keys, now.Add(ticketLead)) {
		keys, err = t.add(ctx, keys, now)
	}
	if err != nil {
		t.setKnown(now)
		return err
	}
	if len(keys) > 0 {
		t.setKeys(keys, now)
	}
	return nil
}

// setKnown sets the known keys again, and a new one if it is overdue.
func (t *tickets) setKnown(now time.Time) {
	t.mu.Lock()
	keys := slices.Clone(t.keys)
	t.mu.Unlock()
	if len(keys) == 0 {
		return
	}
	if due(keys, now.Add(-ticketLead)) { // no edge has been able to store a key
		keys = slices.Insert(keys, 0, newTicketKey(now))
	}
	t.setKeys(keys, now)
}

// due reports whether there is no key, or whether the newest one will have been in use for ticketUse at a given time.
func due(keys []ticketKey, at time.Time) bool {
	return len(keys) == 0 || !at.Before(keys[0].From.Add(ticketUse))
}

// load reads the keys in the store.
func (t *tickets) load(ctx context.Context) (keys []ticketKey, err error) {
	ctx, cancel := context.WithTimeout(ctx, lockLease)
	defer cancel()
	text, err := t.files.Load(ctx, ticketFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &keys); err != nil {
		return nil, fmt.Errorf("read %q: %w", ticketFile, err)
	}
	for _, key := range keys {
		if len(key.Key) != ticketSize {
			return nil, fmt.Errorf("read %q: a key has %d bytes", ticketFile, len(key.Key))
		}
	}
	return keys, nil
}

// add stores a further key and returns all keys. If another edge holds the lock, add returns keys unchanged.
func (t *tickets) add(ctx context.Context, keys []ticketKey, now time.Time) (_ []ticketKey, err error) {
	ctx, cancel := context.WithTimeout(ctx, lockLease)
	defer cancel()
	if locked, err := t.files.TryLock(ctx, ticketLock); err != nil || !locked {
		return keys, err
	}
	defer func() { err = errors.Join(err, t.files.Unlock(ctx, ticketLock)) }()
	if keys, err = t.load(ctx); err != nil || !due(keys, now.Add(ticketLead)) {
		return keys, err
	}
	from := now
	if keys = alive(keys, now); len(keys) > 0 { // the newest key is used until from
		from = later(keys[0].From.Add(ticketUse), now.Add(ticketLead))
	}
	keys = slices.Insert(keys, 0, newTicketKey(from))
	text, err := json.Marshal(keys)
	if err != nil {
		return nil, err
	}
	return keys, t.files.Store(ctx, ticketFile, text)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func newTicketKey(from time.Time) ticketKey {
	key := ticketKey{From: from, Key: make([]byte, ticketSize)}
	_, _ = rand.Read(key.Key) // never fails, see crypto/rand
	return key
}

// alive returns the keys younger than ticketLife, which decrypt tickets.
func alive(keys []ticketKey, now time.Time) []ticketKey {
	return slices.DeleteFunc(keys, func(key ticketKey) bool { return now.Sub(key.From) >= ticketLife })
}

// current returns the index of the key that encrypts tickets: the newest with From in the past, or the oldest if
// there is none.
func current(keys []ticketKey, now time.Time) int {
	for i, key := range keys {
		if !key.From.After(now) {
			return i
		}
	}
	return len(keys) - 1
}

// setKeys makes new connections use keys, which are not empty and belong to tickets from now on.
func (t *tickets) setKeys(keys []ticketKey, now time.Time) {
	if keys = alive(keys, now); len(keys) == 0 {
		keys = []ticketKey{newTicketKey(now)}
	}
	at := current(keys, now)
	all := [][ticketSize]byte{[ticketSize]byte(keys[at].Key)} // crypto/tls encrypts by the first
	for i, key := range keys {
		if i != at {
			all = append(all, [ticketSize]byte(key.Key))
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keys = keys
	t.config.SetSessionTicketKeys(all)
}

// since returns the From of the key that encrypts tickets, the zero time if Go's own keys are in use.
func (t *tickets) since(now time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.keys) == 0 {
		return time.Time{}
	}
	return t.keys[current(t.keys, now)].From
}
