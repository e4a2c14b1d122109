// Package visitorhash tells visitors apart without remembering who they are.
//
// A visitor is an address and a User-Agent header. Their hash, SipHash-2-4 of the account, the address and the header,
// is recorded with a click, and the address is not. Each UTC day has a random key of its own, which all edges share
// through the link store, so the hashes of two days have nothing in common. The key of a day is made keyLead before the
// day, so that midnight needs no store, and deleted keyLead after it: it exists for 48 hours. Then nobody can find the
// visitors of the day by trying out addresses.
//
// A file keeps the keys of a process for the next one, which may start while the store is away. It loses a key when the
// key is deleted, whether or not the store is away; if no process runs then, the next one does it first.
package visitorhash

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dchest/siphash"

	"linkstream/schema"
)

const (
	keySize = 16
	keyLead = 12 * time.Hour // from making a key to its day, and from the end of the day to deleting it

	// between two reads of the store: a store that was moved or restored may have other keys
	look        = 30 * time.Second
	retry       = 2 * time.Second // the same, while the key of the day is missing
	loadTimeout = 5 * time.Second
)

// Store is the part of schema.Database that Keys use.
type Store interface {
	SharedValue(ctx context.Context, name string, first []byte) ([]byte, error)
	DeleteSharedValues(ctx context.Context, from, before string) error
}

// Keys are the keys of the days around now. Its methods may be called concurrently.
type Keys struct {
	store Store
	log   *slog.Logger
	days  atomic.Pointer[[]dayKey] // never changed in place; few
	file  keyFile
}

type dayKey struct {
	day    int64 // UTC, since 1970-01-01
	k0, k1 uint64
	key    []byte
}

// New returns keys that are in store. Until Update has read them, no visitor has a hash.
func New(store Store, log *slog.Logger) *Keys {
	k := &Keys{store: store, log: log}
	k.days.Store(new([]dayKey))
	return k
}

// Open is New, and takes over the keys of an earlier process that a file has at the time now. The file is made if need
// be. Its directory is locked by the process.
func Open(path string, now time.Time, store Store, log *slog.Logger) *Keys {
	k := New(store, log)
	k.file.path = path
	saved, err := k.file.read()
	if err != nil {
		log.Warn("cannot read the keys that tell visitors apart", "error", err)
	}
	var keys []dayKey
	first, _ := daysAround(now)
	for day := first; day <= schema.DayNumber(now)+1; day++ { // also if the clock was ahead
		if key := saved[nameOf(day)]; len(key) == keySize {
			keys = append(keys, newDayKey(day, key))
		}
	}
	k.days.Store(&keys)
	if err := k.file.write(k.days.Load); err != nil {
		log.Warn("cannot keep the keys that tell visitors apart", "error", err)
	}
	return k
}

// daysAround returns the first and the last day whose keys exist at a time.
func daysAround(now time.Time) (first, last int64) {
	return schema.DayNumber(now.Add(-keyLead)), schema.DayNumber(now.Add(keyLead))
}

func newDayKey(day int64, key []byte) dayKey {
	return dayKey{day, binary.LittleEndian.Uint64(key), binary.LittleEndian.Uint64(key[8:]), key}
}

// Hash returns the hash of a visitor to a link of an account at a time: 0 if the key of the day is missing, and
// otherwise not 0. The zero address is an address like others. The User-Agent header counts as far as a click stores
// it.
func (k *Keys) Hash(at time.Time, account int64, client netip.Addr, userAgent []byte) uint64 {
	day := schema.DayNumber(at)
	for _, key := range *k.days.Load() {
		if key.day != day {
			continue
		}
		var buffer [8 + 16 + schema.MaxUserAgentLen]byte
		binary.LittleEndian.PutUint64(buffer[:], uint64(account))
		if client.IsValid() {
			address := client.As16()
			copy(buffer[8:], address[:])
		}
		n := copy(buffer[24:], userAgent)
		return max(1, siphash.Hash(key.k0, key.k1, buffer[:24+n]))
	}
	return 0
}

// Run keeps the keys up to date until ctx is done. It logs one warning for each time that the store is away.
func (k *Keys) Run(ctx context.Context) {
	for away := false; ; {
		err := k.Update(ctx, time.Now())
		if ctx.Err() != nil {
			return
		}
		if err != nil && !away {
			k.log.Warn("cannot share the keys that tell visitors apart, retrying", "error", err)
		}
		away = err != nil
		wait := look
		if !k.Ready(time.Now()) {
			wait = retry
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// Ready reports whether the key of a time is known.
func (k *Keys) Ready(at time.Time) bool {
	_, known := k.keyOf(schema.DayNumber(at))
	return known
}

func (k *Keys) keyOf(day int64) (dayKey, bool) {
	for _, key := range *k.days.Load() {
		if key.day == day {
			return key, true
		}
	}
	return dayKey{}, false
}

// Update reads the keys, makes the keys that are due, and deletes keys of days that have long ended. If the store has
// lost a key that this process has, the process writes it back. While the store is away, the keys in memory stay in
// use.
func (k *Keys) Update(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	known := k.days.Load()
	first, _ := daysAround(now)
	kept := slices.DeleteFunc(slices.Clone(*known), func(key dayKey) bool { return key.day < first })
	if len(kept) < len(*known) {
		k.days.CompareAndSwap(known, &kept)
	}
	return errors.Join(k.share(ctx, now), k.file.write(k.days.Load))
}

// share takes over the keys in the store, and adds the ones that it lacks.
func (k *Keys) share(ctx context.Context, now time.Time) error {
	first, last := daysAround(now)
	var keys []dayKey
	for day := first; day <= last; day++ {
		known, _ := k.keyOf(day)
		key := known.key
		if key == nil && day >= schema.DayNumber(now) {
			key = make([]byte, keySize)
			_, _ = rand.Read(key) // never fails, see crypto/rand
		}
		key, err := k.store.SharedValue(ctx, nameOf(day), key)
		switch {
		case schema.ErrorCode(err) == schema.CodeNotFound: // a day that has ended
			continue
		case err == nil && len(key) != keySize:
			err = fmt.Errorf("the key of visitors of %s has %d bytes", nameOf(day), len(key))
		}
		if err != nil {
			return err
		}
		keys = append(keys, newDayKey(day, key))
	}
	k.days.Store(&keys)
	return k.store.DeleteSharedValues(ctx, schema.SharedVisitorKeys, nameOf(first))
}

// nameOf returns the name of a day's key in the store. Names are in the order of days.
func nameOf(day int64) string {
	return schema.SharedVisitorKeys + time.Unix(day*24*60*60, 0).UTC().Format(time.DateOnly)
}
