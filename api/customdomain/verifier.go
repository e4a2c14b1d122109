package customdomain

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/VictoriaMetrics/metrics"
	"github.com/miekg/dns"
	"golang.org/x/net/publicsuffix"

	"linkstream/schema"
	"linkstream/schema/service"
)

// txtPrefix comes before the host in the name of its TXT record, because a name with a CNAME record cannot have other
// records (RFC 1034, section 3.6.2).
const txtPrefix = "_linkstream."

const (
	maxChain      = 8   // CNAME records in a row
	maxRecords    = 10  // records of one name that a result shows
	maxText       = 255 // characters of a TXT record that a result shows
	maxConcurrent = 32  // verifications
)

// Verifier looks up whether the owner of a host has set the required records. Its methods may be called concurrently.
type Verifier struct {
	target   string // the default domain
	resolver *resolver
	cfg      Config
	slots    chan struct{} // holds one element per verification in progress
	own      ownAddresses
	metrics  *metrics.Set
	log      *slog.Logger
}

// NewVerifier returns a Verifier of hosts that have to lead to target, the default domain. It counts look-ups in set.
func NewVerifier(cfg Config, target schema.Host, set *metrics.Set, log *slog.Logger) *Verifier {
	service.Describe(set, "linkstream_api_domain_lookups_total",
		"DNS records looked up for custom domains, by type and outcome.")
	return &Verifier{
		target: string(target), resolver: newResolver(cfg), cfg: cfg, slots: make(chan struct{}, maxConcurrent),
		metrics: set, log: log,
	}
}

// Target returns the default domain, and whether a CNAME record can point to it: not if it is an address or localhost.
func (v *Verifier) Target() (host string, usable bool) {
	return v.target, !schema.HostIsAddr(v.target) && strings.Contains(v.target, ".")
}

// Expected returns the required records, without looking them up. For an apex it may look up the service's addresses,
// within Config.Timeout.
func (v *Verifier) Expected(ctx context.Context, host, challenge string) Result {
	result := expected(host, challenge, v.target)
	if result.CNAME.Type == Alias && v.resolver.err == nil {
		ctx, cancel := context.WithTimeout(ctx, v.cfg.Timeout)
		defer cancel()
		_, result.CNAME.Own, _ = v.ownAddresses(ctx)
	}
	return result
}

func expected(host, challenge, target string) Result {
	kind := "CNAME"
	if apex, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil && apex == host {
		kind = Alias
	}
	return Result{
		CNAME: Record{Type: kind, Name: host, Value: target},
		TXT:   Record{Type: "TXT", Name: txtPrefix + host, Value: challenge},
	}
}

// Verify looks up both records within Config.Total. Missing records and failing name servers are outcomes, not errors.
// NotCheckedError if there is no resolver, or too many verifications are in progress.
func (v *Verifier) Verify(ctx context.Context, host, challenge string) (Result, error) {
	result := expected(host, challenge, v.target)
	if v.resolver.err != nil {
		const message = "Domains cannot be verified: no DNS resolver is configured."
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

// lookUpCNAME follows CNAME records from r.Name until they reach r.Value or end.
func (v *Verifier) lookUpCNAME(ctx context.Context, r *Record) {
	name := r.Name
	if !v.isPublic(name) {
		r.Outcome = NotPublic
		return
	}
	for range maxChain {
		a := v.resolver.query(ctx, name, dns.TypeCNAME)
		if a.outcome != Found {
			v.fail(r, a)
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
		if !v.isPublic(next) {
			r.Outcome = NotPublic
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

// fail sets the outcome of a look-up that did not find the name, and logs its cause.
func (v *Verifier) fail(r *Record, a answer) {
	r.Outcome = a.outcome
	if a.err != nil {
		v.log.Warn("DNS look-up failed", "name", r.Name, "type", r.Type, "error", a.err)
	}
}

// lookUpTXT looks for r.Value among the TXT records of r.Name, or of the name that its CNAME records lead to.
func (v *Verifier) lookUpTXT(ctx context.Context, r *Record) {
	if !v.isPublic(r.Name) {
		r.Outcome = NotPublic
		return
	}
	a := v.resolver.query(ctx, r.Name, dns.TypeTXT)
	if a.outcome != Found {
		v.fail(r, a)
		return
	}
	v.matchTXT(r, a.records)
}

// matchTXT sets the outcome from the records of an answer.
func (v *Verifier) matchTXT(r *Record, records []dns.RR) {
	owner := r.Name
	for range maxChain {
		next, ok := aliasOf(records, owner)
		if !ok {
			break
		}
		if !v.isPublic(next) { // the resolver has followed it
			r.Outcome = NotPublic
			return
		}
		owner = next
	}
	r.Outcome = NoRecord
	for _, record := range records {
		txt, ok := record.(*dns.TXT)
		if !ok || plainName(txt.Hdr.Name) != owner {
			continue
		}
		// The strings of a record are concatenated without separators (RFC 7208, section 3.3).
		text := strings.Join(txt.Txt, "")
		if text == r.Value {
			r.Outcome, r.Values = Found, []string{text}
			return
		}
		r.Outcome = OtherValue
		if len(r.Values) < maxRecords {
			r.Values = append(r.Values, truncate(text))
		}
	}
}

// isPublic reports whether a name looks public: its top-level domain is in the public DNS, or is the default domain's,
// which may be in a private network. A resolver may also resolve names such as db.internal, which must stay hidden from
// accounts.
func (v *Verifier) isPublic(name string) bool {
	top := topLevel(name)
	_, icann := publicsuffix.PublicSuffix(top)
	return icann && top != "arpa" || top == topLevel(v.target)
}

// topLevel returns the last label of a name.
func topLevel(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// aliasOf returns the target of the CNAME record of name, if records have one.
func aliasOf(records []dns.RR, name string) (next string, ok bool) {
	for _, record := range records {
		if cname, ok := record.(*dns.CNAME); ok && plainName(cname.Hdr.Name) == name {
			return plainName(cname.Target), true
		}
	}
	return "", false
}

func truncate(text string) string {
	if len(text) > maxText {
		return text[:maxText] + "…"
	}
	return text
}
