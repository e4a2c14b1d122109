package customdomain

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// ownAddresses remembers what the default domain's name leads to.
type ownAddresses struct {
	mu       sync.Mutex
	known    []netip.Addr
	lookedUp time.Time
}

const ownFor = time.Minute

// lookUpAddresses sets the addresses of r.Name, which has no CNAME record, and the outcome if it is an apex: all of its
// addresses have to be the service's.
func (v *Verifier) lookUpAddresses(ctx context.Context, r *Record) {
	addresses, a := v.addressesOf(ctx, r.Name)
	r.HasAddress, r.Addresses = len(addresses) > 0, shown(addresses)
	if r.Type != Alias {
		return
	}
	own, show, ownAnswer := v.ownAddresses(ctx)
	r.Own = show
	isOwn := func(address netip.Addr) bool { return slices.Contains(own, address) }
	switch {
	case a.outcome != Found:
		v.fail(r, a)
	case len(addresses) == 0: // r.Outcome says so
	case ownAnswer.outcome != Found:
		v.fail(r, ownAnswer)
	case !slices.ContainsFunc(addresses, func(address netip.Addr) bool { return !isOwn(address) }):
		r.Outcome = Found
	default:
		r.Outcome = OtherValue
	}
}

// shown returns the text of some addresses. Private ones are left out: the resolver may resolve names of an internal
// network, which must stay hidden from the account.
func shown(addresses []netip.Addr) (text []string) {
	for _, address := range addresses {
		if address.IsGlobalUnicast() && !address.IsPrivate() && len(text) < maxRecords {
			text = append(text, address.String())
		}
	}
	return text
}

// addressesOf returns the addresses of a name. The outcome is Found if both kinds were looked up.
func (v *Verifier) addressesOf(ctx context.Context, name string) (addresses []netip.Addr, a answer) {
	a.outcome = Found
	for _, kind := range [...]uint16{dns.TypeA, dns.TypeAAAA} {
		answer := v.resolver.query(ctx, name, kind)
		if answer.outcome != Found {
			a = answer
		}
		for _, record := range answer.records {
			var address netip.Addr
			switch record := record.(type) {
			case *dns.A:
				address, _ = netip.AddrFromSlice(record.A)
			case *dns.AAAA:
				address, _ = netip.AddrFromSlice(record.AAAA)
			default:
				continue
			}
			addresses = append(addresses, address.Unmap())
		}
	}
	return addresses, a
}

// ownAddresses returns the addresses of the service, and the text of the public ones. The outcome is Found, or an
// outcome that says nothing about other names.
func (v *Verifier) ownAddresses(ctx context.Context) (own []netip.Addr, show []string, a answer) {
	v.own.mu.Lock()
	known, lookedUp := v.own.known, v.own.lookedUp
	v.own.mu.Unlock()
	if now := time.Now(); now.Sub(lookedUp) > ownFor {
		if known, a = v.addressesOf(ctx, v.target); a.outcome == Found {
			v.own.mu.Lock()
			v.own.known, v.own.lookedUp = known, now
			v.own.mu.Unlock()
		}
	}
	own = append(slices.Clone(v.cfg.Addresses), known...)
	if len(own) > 0 {
		a = answer{outcome: Found}
	} else if a.outcome == Found || a.outcome == NoName {
		a.outcome = Failed
	}
	return own, shown(own), a
}
