package customdomain

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/VictoriaMetrics/metrics"
	"github.com/miekg/dns"
)

const (
	maxChain   = 8  // CNAME records in a row
	maxRecords = 10 // of a name, that are shown
	maxText    = 255
	maxAtOnce  = 32 // verifications under way
)

// Verifier asks DNS whether a host's owner has set the records of a claim. Its methods may be called concurrently.
type Verifier struct {
	target   string // the default domain
	resolver *resolver
	cfg      Config
	slots    chan struct{} // one for each verification under way
	metrics  *metrics.Set
	log      *slog.Logger
}

// NewVerifier returns a Verifier of hosts that have to lead to the default domain, the host of edgeURL. It counts
// look-ups in set.
func NewVerifier(cfg Config, edgeURL string, set *metrics.Set, log *slog.Logger) (*Verifier, error) {
	target, err := DefaultHost(edgeURL)
	if err != nil {
		return nil, err
	}
	return &Verifier{
		target: target, resolver: newResolver(cfg), cfg: cfg, slots: make(chan struct{}, maxAtOnce),
		metrics: set, log: log,
	}, nil
}

// Target returns the default domain, and whether a CNAME record can lead there: not if that is an address or localhost.
func (v *Verifier) Target() (host string, usable bool) {
	_, err := netip.ParseAddr(v.target)
	return v.target, err != nil && strings.Contains(v.target, ".")
}

// Expected returns the records that have to be there, not looked up.
func (v *Verifier) Expected(host, challenge string) Result {
	return Result{
		CNAME: Record{Type: "CNAME", Name: host, Value: v.target},
		TXT:   Record{Type: "TXT", Name: txtPrefix + host, Value: challenge},
	}
}

// Verify looks both records up, within the time that the configuration allows. That a record is not there, or that the
// name servers fail, is no error. NotCheckedError if there is nobody to ask, or too many are asking.
func (v *Verifier) Verify(ctx context.Context, host, challenge string) (Result, error) {
	result := v.Expected(host, challenge)
	if v.resolver.err != nil {
		const message = "Domains cannot be verified: no DNS resolver is set up."
		return result, &NotCheckedError{Message: message, Err: v.resolver.err}
	}
	select {
	case v.slots <- struct{}{}:
		defer func() { <-v.slots }()
	default:
		return result, &NotCheckedError{Message: "Too many domains are being verified now. Try again in a moment."}
	}
	ctx, cancel := context.WithTimeout(ctx, v.cfg.Total)
	defer cancel()
	var txt sync.WaitGroup
	txt.Go(func() { v.lookUpTXT(ctx, &result.TXT) })
	v.lookUpCNAME(ctx, &result.CNAME)
	txt.Wait()
	for _, r := range result.Records() {
		v.metrics.GetOrCreateCounter(fmt.Sprintf("linkstream_api_domain_lookups_total{type=%q,outcome=%q}",
			r.Type, string(r.Outcome))).Inc()
	}
	return result, nil
}

// lookUpCNAME follows the CNAME records from r.Name until they reach r.Value, or end.
func (v *Verifier) lookUpCNAME(ctx context.Context, r *Record) {
	name := r.Name
	for range maxChain {
		a := v.resolver.ask(ctx, name, dns.TypeCNAME)
		if a.outcome != Found {
			v.note(r, a)
			return
		}
		next, ok := aliasOf(a.records, name)
		switch {
		case !ok && name == r.Name:
			r.Outcome = NoRecord
			v.lookUpAddresses(ctx, r)
			return
		case !ok:
			r.Outcome = OtherValue
			return
		}
		r.Values = append(r.Values, next)
		switch {
		case next == r.Value:
			r.Outcome = Found
			return
		case next == r.Name || slices.Contains(r.Values[:len(r.Values)-1], next):
			r.Outcome = Loop
			return
		}
		name = next
	}
	r.Outcome = TooLong
}

// note sets the outcome of a look-up that found no name.
func (v *Verifier) note(r *Record, a answer) {
	r.Outcome = a.outcome
	if a.err != nil {
		v.log.Warn("a DNS look-up failed", "name", r.Name, "type", r.Type, "error", a.err)
	}
}

// lookUpAddresses notes which addresses r.Name has. Private ones are not told: the resolver may know names of a network
// that is none of the owner's business.
func (v *Verifier) lookUpAddresses(ctx context.Context, r *Record) {
	for _, kind := range [...]uint16{dns.TypeA, dns.TypeAAAA} {
		for _, record := range v.resolver.ask(ctx, r.Name, kind).records {
			var addr netip.Addr
			switch record := record.(type) {
			case *dns.A:
				addr, _ = netip.AddrFromSlice(record.A.To4())
			case *dns.AAAA:
				addr, _ = netip.AddrFromSlice(record.AAAA)
			default:
				continue
			}
			r.HasAddress = true
			if addr.IsGlobalUnicast() && !addr.IsPrivate() && len(r.Addresses) < maxRecords {
				r.Addresses = append(r.Addresses, addr.Unmap().String())
			}
		}
	}
}

// lookUpTXT looks for a TXT record at r.Name, or where a CNAME record there leads, that says r.Value.
func (v *Verifier) lookUpTXT(ctx context.Context, r *Record) {
	a := v.resolver.ask(ctx, r.Name, dns.TypeTXT)
	if a.outcome != Found {
		v.note(r, a)
		return
	}
	matchTXT(r, a.records)
}

// matchTXT sets the outcome by the records of an answer.
func matchTXT(r *Record, records []dns.RR) {
	owner := r.Name
	for range maxChain {
		next, ok := aliasOf(records, owner)
		if !ok {
			break
		}
		owner = next
	}
	r.Outcome = NoRecord
	for _, record := range records {
		txt, ok := record.(*dns.TXT)
		if !ok || plainName(txt.Hdr.Name) != owner {
			continue
		}
		// The strings of a record are one text, without anything between them (RFC 7208, section 3.3).
		text := strings.Join(txt.Txt, "")
		if text == r.Value {
			r.Outcome, r.Values = Found, []string{text}
			return
		}
		r.Outcome = OtherValue
		if len(r.Values) < maxRecords {
			r.Values = append(r.Values, shorten(text))
		}
	}
}

// aliasOf returns the name that a CNAME record among records gives for name.
func aliasOf(records []dns.RR, name string) (next string, ok bool) {
	for _, record := range records {
		if cname, ok := record.(*dns.CNAME); ok && plainName(cname.Hdr.Name) == name {
			return plainName(cname.Target), true
		}
	}
	return "", false
}

func shorten(text string) string {
	if len(text) > maxText {
		return text[:maxText] + "…"
	}
	return text
}
