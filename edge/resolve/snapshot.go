package resolve

import (
	"context"
	"encoding/binary"
	"log/slog"
	"strings"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/edge/resolve/snapshot"
	"linkstream/schema"
	"linkstream/schema/service"
)

// The kinds of records in a dump. Integers in hosts and links are uvarints.
const (
	kindPosition = 1 // the first record: offset and identity in the topic, position in the outbox (8 bytes each)
	kindHost     = 2 // length of the host, host, domain ID, site
	kindOldLink  = 3 // of releases without paths behind names: as kindLink, but without paths
	kindLink     = 4 // length of the key, key, link ID, account ID, paths (1 byte), answer
)

// Position is up to where changes have been dropped.
type Position struct {
	Topic  schema.ChangePosition // zero: unknown
	Outbox schema.OutboxPosition // a dump has no Seen
}

// dump adds the position and the entries to a dump. The position comes first: changes before it have dropped all
// entries that they concern.
func (r *Resolver) dump(w *snapshot.Writer) error {
	if err := w.Add(kindPosition, appendPosition(nil, r.Position())); err != nil {
		return err
	}
	if err := dumpEntries(w, kindHost, r.hosts, appendHost); err != nil {
		return err
	}
	return dumpEntries(w, kindLink, r.links, appendLink)
}

// dumpEntries adds the entries of a cache that were never dropped.
func dumpEntries[V value](
	w *snapshot.Writer, kind byte, c *cache[V], appendEntry func([]byte, *entry[V]) []byte,
) error {
	var body []byte
	for _, chunk := range c.store.collect() {
		for _, e := range chunk {
			if e.state.wasDropped() {
				continue
			}
			body = appendEntry(body[:0], e)
			if err := w.Add(kind, body); err != nil {
				return err
			}
		}
	}
	return nil
}

func appendPosition(dst []byte, p Position) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(p.Topic.Next))
	dst = binary.LittleEndian.AppendUint64(dst, p.Topic.Last)
	return binary.LittleEndian.AppendUint64(dst, uint64(p.Outbox.Next))
}

// decodePosition returns the zero position if body is none.
func decodePosition(body []byte) (p Position) {
	if len(body) == 24 {
		p.Topic.Next = int64(binary.LittleEndian.Uint64(body))
		p.Topic.Last = binary.LittleEndian.Uint64(body[8:])
		p.Outbox.Next = int64(binary.LittleEndian.Uint64(body[16:]))
	}
	return p
}

func appendHost(dst []byte, e *entry[domainID]) []byte {
	dst = appendKey(dst, e.key())
	return append(binary.AppendUvarint(dst, uint64(e.value)), e.answer()...)
}

func appendLink(dst []byte, e *entry[linkIDs]) []byte {
	dst = appendKey(dst, e.key())
	dst = binary.AppendUvarint(dst, uint64(e.value.link))
	dst = binary.AppendUvarint(dst, uint64(e.value.account))
	dst = append(dst, byte(e.paths))
	return append(dst, e.answer()...)
}

func appendKey(dst, key []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(key))), key...)
}

// decodeHost returns nil if body is no host's.
func decodeHost(body []byte) *entry[domainID] {
	host, body, ok := cutKey(body)
	id, n := binary.Uvarint(body)
	if !ok || len(host) > schema.MaxHostLen || n <= 0 || !validFields(body[n:], fieldSiteColor) {
		return nil
	}
	return newEntry(domainID(id), host, body[n:])
}

// decodeLink returns nil if body is no link's.
func decodeLink(kind byte, body []byte) *entry[linkIDs] {
	key, body, ok := cutKey(body)
	link, n := binary.Uvarint(body)
	if !ok || n <= 0 || len(key) <= 8 || len(key) > len(linkKey{}) {
		return nil
	}
	account, m := binary.Uvarint(body[n:])
	if m <= 0 {
		return nil
	}
	allowed := paths(pathsBeneath)
	answer := body[n+m:]
	if kind == kindLink {
		if len(answer) == 0 {
			return nil
		}
		allowed, answer = paths(answer[0]), answer[1:]
	}
	if !validAnswer(answer) {
		return nil
	}
	e := newEntry(linkIDs{int64(link), int64(account)}, key, answer)
	e.paths = allowed
	return e
}

// cutKey splits a body into the key at its beginning and the rest.
func cutKey(body []byte) (key, rest []byte, ok bool) {
	length, n := binary.Uvarint(body)
	if n <= 0 || length > uint64(len(body)-n) {
		return nil, nil, false
	}
	return body[n : n+int(length)], body[n+int(length):], true
}

// restoring puts the entries of a snapshot into the caches.
type restoring struct {
	resolver *Resolver
	hosts    map[string]bool // that were dropped since the dump
	links    map[string]bool // that were dropped since the dump, by linkKey
	accounts map[int64]bool  // whose links were dropped since the dump
	unknown  bool            // the list has a key of another release
	entries  int
}

// setsAtOnce is how many entries are given to ristretto's queue, which has room for twice as many, before record waits.
const setsAtOnce = 16 << 10

// dropped notes a key of the list.
func (s *restoring) dropped(key string) {
	change, ok := schema.ParseChange(key)
	switch {
	case !ok:
		s.unknown = true
	case change.AccountID != 0:
		s.accounts[change.AccountID] = true
	case change.Hash == "":
		s.hosts[change.Host] = true
	default:
		name := change.Hash
		for named := true; named; name, named = cutSegment(name) {
			s.links[string(new(linkKey).append(domainID(change.DomainID), []byte(name)))] = true
		}
	}
}

// cutSegment returns the name in front of the last segment of a name, if there is one.
func cutSegment(name string) (front string, ok bool) {
	end := strings.LastIndexByte(name, '/')
	return name[:max(end, 0)], end > 0
}

// record takes a record of the dump. Records that are not valid are left out.
func (s *restoring) record(kind byte, body []byte) {
	switch {
	case s.unknown:
	case kind == kindPosition:
		s.resolver.position = decodePosition(body)
	case kind == kindHost:
		if e := decodeHost(body); e != nil && !s.hosts[string(e.key())] {
			s.resolver.hosts.restore(e)
			s.added()
		}
	case kind == kindLink || kind == kindOldLink:
		if e := decodeLink(kind, body); e != nil && !s.links[string(e.key())] && !s.accounts[e.value.account] {
			s.resolver.links.restore(e)
			s.added()
		}
	}
}

// added counts an entry.
func (s *restoring) added() {
	if s.entries++; s.entries%setsAtOnce == 0 {
		s.wait()
	}
}

// wait waits until the caches have the entries.
func (s *restoring) wait() {
	s.resolver.hosts.store.wait()
	s.resolver.links.store.wait()
}

// restore adds an entry of a snapshot, which is dropped until Reached says that it is current.
func (c *cache[V]) restore(e *entry[V]) {
	e.state.setRestored()
	c.judge(e)
	c.store.set(e)
}

func newRestoring(r *Resolver) *restoring {
	return &restoring{resolver: r, hosts: map[string]bool{}, links: map[string]bool{}, accounts: map[int64]bool{}}
}

// openSnapshot restores what the snapshot at path has, and begins to write dumps.
func (r *Resolver) openSnapshot(path string, set *metrics.Set, log *slog.Logger) {
	start := time.Now()
	s := newRestoring(r)
	r.snapshot = snapshot.Open(path, s.dropped, s.record, set, log)
	s.wait()
	r.hosts.store.each(func(*entry[domainID]) { r.restored++ })
	r.links.store.each(func(*entry[linkIDs]) { r.restored++ })
	service.NewGauge(set, "linkstream_edge_snapshot_restored",
		"Cached hosts and links that the process found in the snapshot when it started.",
		func() float64 { return float64(r.restored) })
	if r.restored > 0 {
		log.Info("cached links restored", "entries", r.restored, "seconds", time.Since(start).Seconds())
	}
	r.snapshot.Start(r.dump)
}

// Restored returns how many hosts and links the snapshot had.
func (r *Resolver) Restored() int { return r.restored }

// Position returns up to where changes have been dropped, by this process or by the one that wrote the snapshot.
func (r *Resolver) Position() Position {
	r.reaching.Lock()
	defer r.reaching.Unlock()
	return r.position
}

// Reached says that all changes before a position in the topic have been dropped, and with current that there were no
// more a moment ago. Then restored entries are as fresh as if they had just been looked up, except for those that were
// dropped. It implements stream.ChangeFollower.
func (r *Resolver) Reached(p schema.ChangePosition, current bool) {
	r.reaching.Lock()
	defer r.reaching.Unlock()
	r.position.Topic = p
	select {
	case <-r.current:
	default:
		if current {
			now := time.Now()
			r.hosts.confirm(now)
			r.links.confirm(now)
			close(r.current)
		}
	}
}

// ReachedInOutbox says that all changes before a position in the outbox have been dropped.
func (r *Resolver) ReachedInOutbox(position schema.OutboxPosition) {
	r.reaching.Lock()
	defer r.reaching.Unlock()
	r.position.Outbox = position
}

// AwaitCurrent waits until restored entries need no look-up, or ctx is done. It returns at once if there are none.
func (r *Resolver) AwaitCurrent(ctx context.Context) {
	if r.restored == 0 {
		return
	}
	select {
	case <-r.current:
	case <-ctx.Done():
	}
}
