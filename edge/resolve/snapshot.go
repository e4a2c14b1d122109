package resolve

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/edge/snapshot"
	"linkstream/schema"
	"linkstream/schema/service"
)

// The kinds of records in a snapshot. A release that gives an entry another meaning, or more of it, gives it another kind, and
// may read the old one as well: a record of a kind that is not known ends what is restored.
const (
	kindLink      = snapshot.Entry | 1 // length of the key, key, link ID, account ID, location; integers are uvarints
	kindHost      = snapshot.Entry | 2 // length of the host, host, domain ID
	kindDropLink  = 1                  // key: what was saved of it before is not true any more
	kindDropHost  = 2                  // host
	kindDropLinks = 3                  // all links
	kindDropHosts = 4                  // all hosts
	kindRecall    = 5                  // account ID: the same of all its links
	kindPosition  = 6                  // schema.ChangePosition: changes before it are taken into account in all records before
)

// saver writes what a cache publishes to a snapshot. The zero saver writes nothing.
type saver[V value] struct {
	log           *snapshot.Log
	kind          byte // of an entry
	drop, dropAll byte
	encode        func(dst []byte, key string, e *entry[V]) []byte
	isRecalled    func(e *entry[V]) bool // whether a recall has made the entry out of date
}

// save saves the entry that replaces old, which may be nil, unless the snapshot has the same already. The entry is in the
// shards. The caller holds cache.mu, so that drop comes before or after, in memory as in the snapshot.
func (s *saver[V]) save(key string, e, old *entry[V]) {
	if s.log == nil || e.state.everDropped() {
		return
	}
	if old != nil && e.equals(old) && !old.state.everDropped() && !s.isRecalled(old) && old.saved.Load() >= max(1, s.log.SavedSince()) {
		e.saved.Store(old.saved.Load())
		return
	}
	e.saved.Store(s.log.Append(s.kind, s.encode(nil, key, e)))
	if s.isRecalled(e) { // perhaps its record follows that of the recall
		s.forget(key)
	}
}

// forget saves that what was saved of a key is not true any more. The caller holds cache.mu.
func (s *saver[V]) forget(key string) {
	if s.log != nil {
		s.log.Append(s.drop, []byte(key))
	}
}

func (s *saver[V]) forgetAll() {
	if s.log != nil {
		s.log.Append(s.dropAll, nil)
	}
}

// restore adds an entry of the snapshot to the backlog, which is not proven to be true yet.
func (c *cache[V]) restore(key []byte, v V, bytes []byte, number uint64, round uint32) {
	hash, check := c.hash(key)
	e := newEntry(v, bytes)
	e.check = check
	e.state.setUnproven()
	e.reviewed.Store(pending(round))
	e.saved.Store(number)
	c.backlog.Load().add(hash, e)
}

// unrestore removes an entry that a later record of the snapshot drops.
func (c *cache[V]) unrestore(key []byte) {
	hash, _ := c.hash(key)
	c.backlog.Load().remove(hash)
}

// kept appends the numbers of the entries that a new file of the snapshot must have.
func (c *cache[V]) kept(numbers []uint64) []uint64 {
	c.each(func(e *entry[V]) {
		if n := e.saved.Load(); n > 0 && !e.state.everDropped() && !c.saver.isRecalled(e) {
			numbers = append(numbers, n)
		}
	})
	return numbers
}

func encodeHost(dst []byte, host string, e *entry[domainID]) []byte {
	dst = append(binary.AppendUvarint(dst, uint64(len(host))), host...)
	return binary.AppendUvarint(dst, uint64(e.value))
}

func decodeHost(body []byte) (host []byte, domain domainID, ok bool) {
	host, body, ok = cutKey(body)
	id, n := binary.Uvarint(body)
	return host, domainID(id), ok && n > 0 && n == len(body)
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
	hosts, links := newBacklog(r.hosts.shards), newBacklog(r.links.shards)
	r.hosts.backlog.Store(hosts)
	r.links.backlog.Store(links)
	r.log, err = snapshot.Open(path, r.restore, set, log)
	if err != nil {
		return err
	}
	r.hosts.saver.log, r.links.saver.log = r.log, r.log
	restored := hosts.count + links.count
	service.Describe(set, "linkstream_edge_snapshot_restored", "Cached hosts and links that the process found in the snapshot when it started.")
	set.NewGauge("linkstream_edge_snapshot_restored", func() float64 { return float64(restored) })
	r.restored = restored
	if restored > 0 {
		log.Info("cached links restored", "entries", restored, "seconds", time.Since(start).Seconds())
	}
	r.log.Start(r.keep)
	return nil
}

// restore does what a record says. It fails if it does not know the kind.
func (r *Resolver) restore(record snapshot.Record) error {
	switch record.Kind {
	case kindLink:
		if key, ids, answer, ok := decodeLink(record.Body); ok {
			r.links.restore(key, ids, answer, record.Number, r.review.round.Load())
		}
	case kindHost:
		if host, domain, ok := decodeHost(record.Body); ok {
			r.hosts.restore(host, domain, nil, record.Number, 0)
		}
	case kindDropLink:
		r.links.unrestore(record.Body)
	case kindDropHost:
		r.hosts.unrestore(record.Body)
	case kindDropLinks:
		r.links.backlog.Load().clear()
	case kindDropHosts:
		r.hosts.backlog.Load().clear()
	case kindRecall:
		if account, n := binary.Uvarint(record.Body); n > 0 {
			r.review.recall(int64(account))
		}
	case kindPosition:
		r.position = decodePosition(record.Body)
	default:
		return fmt.Errorf("kind %d is that of another release", record.Kind)
	}
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
	if current && r.proven.CompareAndSwap(0, time.Now().UnixNano()) {
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

// Missed says that changes may have been missed: everything is looked up again. While the store does not answer, requests get
// what was cached before.
func (r *Resolver) Missed() {
	r.missed.Inc()
	r.hosts.dropAll()
	r.links.dropAll()
}
