//go:build !race

package simulation_test

import (
	"context"
	"math/rand/v2"
	"sync"

	"linkstream/schema"
)

// leaseStore is a model of the link store, as far as it knows limits of one link.
type leaseStore struct {
	broken   brokenLeases // never changes
	mu       sync.Mutex   // held for all below
	limit    int64
	holders  map[schema.Incarnation]bool // whether they may take leases
	leases   map[schema.Incarnation]schema.LimitLease
	ended    int64    // clicks that ended holders have spent
	late     []func() // calls that have not arrived yet
	faults   bool
	random   *rand.Rand // of faults
	occurred map[leaseFault]int
	away     bool
}

// brokenLeases names the rules of the protocol of leases that a simulation breaks.
type brokenLeases struct {
	takesLater    bool // an edge takes a click after it has recorded it
	forgetsClicks bool // the spool does not note the clicks of a segment that it removes
	forgetsLeases bool // the spool does not note that a process has leases
	endsBlindly   bool // a holder that is gone is taken to have spent what the store knows
	endsTwice     bool // the store ends leases again
	endsOthers    bool // leases of edges that are cut off are ended
	ignoresEnded  bool // the store forgets what ended holders have spent
	takesLate     bool // calls that arrive late take effect
	resurrects    bool // a late call makes an ended holder a new one
	givesUsed     bool // an edge gives back a click too many
}

func (s *leaseStore) granted() (sum int64) {
	if !s.broken.ignoresEnded {
		sum = s.ended
	}
	for _, l := range s.leases {
		sum += l.Granted
	}
	return sum
}

func (s *leaseStore) take(holder schema.Incarnation, given schema.LimitLease) (schema.LimitLease, error) {
	row, known := s.leases[holder]
	if !s.holders[holder] && !s.broken.resurrects || known && row.Call >= given.Call && !s.broken.takesLate {
		return given, schema.Errorf(schema.CodeNotFound, "no such holder")
	}
	if given.Granted < 0 {
		given.Granted = row.Spent
	}
	free := max(0, s.limit-(s.granted()-row.Granted)-given.Granted)
	given.Granted += min(free, max(1, free/schema.LeaseShare), schema.MaxLease)
	given.Spent = max(given.Spent, row.Spent)
	s.leases[holder] = given
	return given, nil
}

func (s *leaseStore) state(holder schema.Incarnation, given schema.LimitLease) {
	row, known := s.leases[holder]
	if !known || row.Call >= given.Call && !s.broken.takesLate {
		return
	}
	given.Spent = max(given.Spent, row.Spent)
	if given.Granted < 0 {
		given.Granted = given.Spent
	}
	s.leases[holder] = given
}

func (s *leaseStore) end(holder schema.Incarnation, spent int64) {
	if !s.holders[holder] && !s.broken.endsTwice {
		return
	}
	s.holders[holder] = false
	row := s.leases[holder]
	if !s.broken.endsBlindly {
		row.Spent = max(row.Spent, spent)
	}
	s.ended += row.Spent
	delete(s.leases, holder)
}

// leaseView is the store as the edge of one process sees it: any call may fail, get no answer, or arrive later.
type leaseView struct {
	*leaseStore
	cutOff bool // the process is dead, or the network is; guarded by mu
}

// leaseFault is a kind of fault of the simulation of leases.
type leaseFault string

const (
	leaseCallFails leaseFault = "a call fails"
	leaseCallLost  leaseFault = "a call succeeds and is reported as failed"
	leaseCallLate  leaseFault = "a call is reported as failed and arrives later"
)

// call calls the store.
func (v *leaseView) call(work func()) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.cutOff || v.away {
		return errNetwork
	}
	if v.faults {
		switch v.random.IntN(24) {
		case 0:
			v.occurred[leaseCallFails]++
			return errNetwork
		case 1:
			v.occurred[leaseCallLost]++
			work()
			return errNetwork
		case 2:
			v.occurred[leaseCallLate]++
			v.late = append(v.late, work)
			return errNetwork
		}
	}
	work()
	return nil
}

func (v *leaseView) AddLeaseHolder(_ context.Context, holder schema.Incarnation) error {
	return v.call(func() {
		if _, known := v.holders[holder]; !known || v.broken.resurrects {
			v.holders[holder] = true
		}
	})
}

func (v *leaseView) TakeLease(
	_ context.Context, holder schema.Incarnation, given schema.LimitLease,
) (now schema.LimitLease, err error) {
	called := v.call(func() { now, err = v.take(holder, given) })
	if called != nil {
		return given, called
	}
	return now, err
}

func (v *leaseView) StateLeases(_ context.Context, holder schema.Incarnation, given []schema.LimitLease) error {
	return v.call(func() {
		for _, lease := range given {
			if v.broken.givesUsed && lease.Granted > 0 {
				lease.Granted--
			}
			v.state(holder, lease)
		}
	})
}

func (v *leaseView) EndLeases(_ context.Context, holder schema.Incarnation, spent map[int64]int64) error {
	return v.call(func() { v.end(holder, spent[limitedLinkID]) })
}

func (v *leaseView) LimitUse(context.Context, []int64) (use map[int64]schema.LimitUse, err error) {
	err = v.call(func() { use = map[int64]schema.LimitUse{limitedLinkID: {Granted: v.granted()}} })
	return use, err
}
