package resolve

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/edge/resolve/snapshot"
	"linkstream/schema"
	"linkstream/schema/service"
)

// The kinds of records in a snapshot. A release that gives an entry another meaning, or more of it, gives it another kind, and
// may read the old one as well: a record of a kind that is not known ends what is restored.
const (
	kindLink      = snapshot.Entry | 1 // length of the key, key, link ID, account ID, location; integers are uvarints
	kindHost      = snapshot.Entry | 2 // length of the host, host, domain ID, site
	kindDropLink  = 1                  // key: what was saved of it before is not true any more
	kindDropHost  = 2                  // host
	kindDropLinks = 3                  // all links
	kindDropHosts = 4                  // all hosts
	kindRecall    = 5                  // account ID: the same for all its links
	kindPosition  = 6                  // schema.ChangePosition: changes before it are taken into account in all records before
)

// saver writes what a cache publishes to a snapshot. Without a log it writes nothing. Callers hold cache.mu, so that records have the
// order of the changes in memory.
type saver[V value] struct {
	log           *snapshot.Log
	kind          byte // of an entry
	drop, dropAll byte
	encode        func(dst []byte, key string, e *entry[V]) []byte
}

var (
	hostSaver = saver[domainID]{kind: kindHost, drop: kindDropHost, dropAll: kindDropHosts, encode: encodeHost}
	linkSaver = saver[linkIDs]{kind: kindLink, drop: kindDropLink, dropAll: kindDropLinks, encode: encodeLink}
)

// save saves the entry that replaces old, which may be nil, unless the snapshot has the same already. The entry is in the store.
func (s *saver[V]) save(key string, e, old *entry[V]) {
	if s.log == nil || e.state.wasDropped() {
		return
	}
	if old != nil && e.equals(old) && !old.state.wasDropped() && old.saved.Load() >= max(1, s.log.SavedSince()) {
		e.saved.Store(old.saved.Load())
		return
	}
	e.saved.Store(s.log.Append(s.kind, s.encode(nil, key, e)))
}

// forget saves that earlier records of a key are not true any more.
func (s *saver[V]) forget(key string) { s.note(s.drop, []byte(key)) }

// forgetAll saves that no earlier record is true any more.
func (s *saver[V]) forgetAll() { s.note(s.dropAll, nil) }

// recall saves that earlier records of an account's links are not true any more.
func (s *saver[V]) recall(account int64) {
	s.note(kindRecall, binary.AppendUvarint(nil, uint64(account)))
}

func (s *saver[V]) note(kind byte, body []byte) {
	if s.log != nil {
		s.log.Append(kind, body)
	}
}

// kept appends the numbers of the entries that a new file of the snapshot must have.
func (c *cache[V]) kept(numbers []uint64) []uint64 {
	c.store.each(func(e *entry[V]) {
		if n := e.saved.Load(); n > 0 && !e.state.wasDropped() {
			numbers = append(numbers, n)
		}
	})
	return numbers
}

// restoring is the entries that a snapshot has up to some record, by the first hashes of their keys.
type restoring struct {
	hosts  map[uint64]*entry[domainID]
	links  map[uint64]*entry[linkIDs]
	last   uint64           // number of the last entry
	recall map[int64]uint64 // by account, the number of the last entry before its links changed
}

func newRestoring() *restoring {
	return &restoring{map[uint64]*entry[domainID]{}, map[uint64]*entry[linkIDs]{}, 0, map[int64]uint64{}}
}

// apply does what a record says. It fails if it does not know the kind.
func (r *Resolver) apply(s *restoring, record snapshot.Record) error {
	s.last = max(s.last, record.Number)
	switch record.Kind {
	case kindLink:
		if key, ids, answer, ok := decodeLink(record.Body); ok {
			r.links.restore(s.links, key, newEntry(ids, answer), record.Number)
		}
	case kindHost:
		if host, domain, site, ok := decodeHost(record.Body); ok {
			r.hosts.restore(s.hosts, host, newEntry(domain, site), record.Number)
		}
	case kindDropLink:
		hash, _ := r.links.store.hash(record.Body)
		delete(s.links, hash)
	case kindDropHost:
		hash, _ := r.hosts.store.hash(record.Body)
		delete(s.hosts, hash)
	case kindDropLinks:
		clear(s.links)
	case kindDropHosts:
		clear(s.hosts)
	case kindRecall:
		if account, n := binary.Uvarint(record.Body); n > 0 {
			s.recall[int64(account)] = s.last
		}
	case kindPosition:
		r.position = decodePosition(record.Body)
	default:
		return fmt.Errorf("kind %d is that of another release", record.Kind)
	}
	return nil
}

// restore adds an entry of the snapshot, which is dropped until Reached says that it is true.
func (c *cache[V]) restore(to map[uint64]*entry[V], key []byte, e *entry[V], number uint64) {
	var hash uint64
	hash, e.check = c.store.hash(key)
	e.state.setRestored()
	e.saved.Store(number)
	to[hash] = e
}

// setsAtOnce is how many entries are given to ristretto's queue, which has room for twice as many, before load waits for it.
const setsAtOnce = 16 << 10

// load puts restored entries into the store, and returns how many of them there is room for.
func (c *cache[V]) load(entries map[uint64]*entry[V]) (kept int) {
	n := 0
	for hash, e := range entries {
		c.judge(e)
		c.store.set(hash, e)
		if n++; n%setsAtOnce == 0 {
			c.store.wait()
		}
	}
	c.store.wait()
	c.store.each(func(*entry[V]) { kept++ })
	return kept
}

// load puts the restored entries into the caches.
func (r *Resolver) load(s *restoring) {
	maps.DeleteFunc(s.links, func(_ uint64, e *entry[linkIDs]) bool { return e.saved.Load() <= s.recall[e.value.account] })
	r.restored = r.hosts.load(s.hosts) + r.links.load(s.links)
}

func encodeHost(dst []byte, host string, e *entry[domainID]) []byte {
	dst = append(binary.AppendUvarint(dst, uint64(len(host))), host...)
	return append(binary.AppendUvarint(dst, uint64(e.value)), e.bytes()...)
}

func decodeHost(body []byte) (host []byte, domain domainID, site []byte, ok bool) {
	host, body, ok = cutKey(body)
	id, n := binary.Uvarint(body)
	if !ok || n <= 0 || !validFields(body[n:], fieldAppLinks) {
		return nil, 0, nil, false
	}
	return host, domainID(id), body[n:], true
}

func encodeLink(dst []byte, key string, e *entry[linkIDs]) []byte {
	dst = append(binary.AppendUvarint(dst, uint64(len(key))), key...)
	dst = binary.AppendUvarint(dst, uint64(e.value.link))
	dst = binary.AppendUvarint(dst, uint64(e.value.account))
	return append(dst, e.bytes()...)
}

func decodeLink(body []byte) (key []byte, ids linkIDs, answer []byte, ok bool) {
	key, body, ok = cutKey(body)
	link, n := binary.Uvarint(body)
	if n <= 0 || !ok || len(key) <= 8 || len(key) > len(linkKey{}) {
		return nil, linkIDs{}, nil, false
	}
	account, m := binary.Uvarint(body[n:])
	if m <= 0 || !validAnswer(body[n+m:]) {
		return nil, linkIDs{}, nil, false
	}
	return key, linkIDs{int64(link), int64(account)}, body[n+m:], true
}

// cutKey splits a body into the key at its beginning and the rest.
func cutKey(body []byte) (key, rest []byte, ok bool) {
	length, n := binary.Uvarint(body)
	if n <= 0 || length > uint64(len(body)-n) {
		return nil, nil, false
	}
	return body[n : n+int(length)], body[n+int(length):], true
}

// openSnapshot restores what the snapshot at path has, and begins to save.
func (r *Resolver) openSnapshot(path string, set *metrics.Set, log *slog.Logger) (err error) {
	start := time.Now()
	s := newRestoring()
	r.log, err = snapshot.Open(path, func(record snapshot.Record) error { return r.apply(s, record) }, set, log)
	if err != nil {
		return err
	}
	r.load(s)
	r.hosts.saver.log, r.links.saver.log = r.log, r.log
	service.NewGauge(set, "linkstream_edge_snapshot_restored", "Cached hosts and links that the process found in the snapshot when it started.",
		func() float64 { return float64(r.restored) })
	if r.restored > 0 {
		log.Info("cached links restored", "entries", r.restored, "seconds", time.Since(start).Seconds())
	}
	r.log.Start(r.keep)
	return nil
}

func encodePosition(p schema.ChangePosition) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(p.Next)), p.Last)
}

// decodePosition returns the zero position if there is none.
func decodePosition(body []byte) schema.ChangePosition {
	if len(body) != 16 {
		return schema.ChangePosition{}
	}
	return schema.ChangePosition{Next: int64(binary.LittleEndian.Uint64(body)), Last: binary.LittleEndian.Uint64(body[8:])}
}

// keep is a snapshot.Keep. It takes the position first: changes before it have dropped all entries that they concern.
func (r *Resolver) keep() (first []snapshot.Record, numbers []uint64) {
	r.reaching.Lock()
	first = []snapshot.Record{{Kind: kindPosition, Body: encodePosition(r.position)}}
	r.reaching.Unlock()
	return first, r.links.kept(r.hosts.kept(nil))
}

// Restored returns how many hosts and links the snapshot had.
func (r *Resolver) Restored() int { return r.restored }

// Position returns the position in the log of changes up to which the snapshot is true; the zero position if that is unknown.
func (r *Resolver) Position() schema.ChangePosition {
	r.reaching.Lock()
	defer r.reaching.Unlock()
	return r.position
}

// Reached says that all changes before p have been dropped, and with current that there were no more a moment ago. Then what
// the snapshot had is as fresh as if it had just been looked up, except for what has been dropped.
func (r *Resolver) Reached(p schema.ChangePosition, current bool) {
	r.reaching.Lock()
	if p != r.position {
		r.position = p
		if r.log != nil {
			r.log.Append(kindPosition, encodePosition(p))
		}
	}
	r.reaching.Unlock()
	if current && r.proven.CompareAndSwap(false, true) {
		now := time.Now()
		r.hosts.prove(now)
		r.links.prove(now)
		close(r.isProven)
	}
}

// AwaitProof waits until restored entries need no look-up, for at most a time. It returns at once if there are none.
func (r *Resolver) AwaitProof(ctx context.Context, most time.Duration) {
	if r.restored == 0 {
		return
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-r.isProven:
	case <-timer.C:
	case <-ctx.Done():
	}
}
