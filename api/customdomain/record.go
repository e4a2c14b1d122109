package customdomain

import (
	"fmt"
	"strings"
)

// Outcome is the result of the look-up of a record.
type Outcome string

// The outcomes.
const (
	Unchecked  Outcome = ""            // not looked up
	Found      Outcome = "found"       // the record exists with the right value
	NoName     Outcome = "no_name"     // the name does not exist (NXDOMAIN)
	NoRecord   Outcome = "no_record"   // the name has no record of this type
	OtherValue Outcome = "other_value" // the name has records of this type, none with the right value
	Loop       Outcome = "loop"        // the CNAME records form a loop
	TooLong    Outcome = "too_long"    // the chain of CNAME records is longer than maxChain
	// the name, or a name that it leads to, is not of the public DNS: it is not looked up
	NotPublic    Outcome = "not_public"
	Timeout      Outcome = "timeout"       // no answer in time
	ServerFailed Outcome = "server_failed" // the resolver failed (SERVFAIL)
	Refused      Outcome = "refused"       // the resolver refused the query (REFUSED)
	Failed       Outcome = "failed"        // any other failure
)

// Record is a DNS record that an owner has to set, with the result of its look-up.
type Record struct {
	Type  string // "CNAME", Alias or "TXT"
	Name  string
	Value string // the required value
	// Own is, for Alias, the public addresses of the service. The name may have any of them.
	Own []string

	Outcome Outcome
	// Values are the values in DNS: for CNAME the chain of names in order, for TXT the texts. Names that are not public,
	// and their values, are left out: they belong to the resolver's own network. Anyone may have written it. It is in the
	// presentation format of RFC 1035, so every character is printable ASCII.
	Values []string
	// HasAddress is whether a name without a CNAME record has addresses. Addresses are the public ones among them.
	HasAddress bool
	Addresses  []string
}

// Alias is the type of the record that leads visitors of an apex to the default domain. The name at the apex of a zone
// has other records, so it cannot have a CNAME record (RFC 1034, section 3.6.2). DNS providers offer substitutes, which
// answer with the default domain's addresses, under names such as ALIAS, ANAME and CNAME flattening.
const Alias = "ALIAS"

// IsAlias reports whether the record is of type Alias.
func (r Record) IsAlias() bool { return r.Type == Alias }

// OK reports whether the record exists with the right value.
func (r Record) OK() bool { return r.Outcome == Found }

// definite reports whether the outcome says what DNS holds. Other outcomes mean that DNS did not answer.
func (r Record) definite() bool {
	switch r.Outcome {
	case Found, NoName, NoRecord, OtherValue, Loop, TooLong, NotPublic:
		return true
	}
	return false
}

// Others returns Values, or nil if the required value is all that DNS holds.
func (r Record) Others() []string {
	if len(r.Values) == 1 && r.Values[0] == r.Value {
		return nil
	}
	return r.Values
}

// State returns the outcome in a word or two.
func (r Record) State() string {
	switch r.Outcome {
	case Found:
		return "Found"
	case NoName, NoRecord:
		return "Not found"
	case OtherValue, Loop, TooLong, NotPublic:
		return "Another value"
	}
	return "Not known"
}

// Explanation returns the outcome in a sentence.
func (r Record) Explanation() string {
	switch r.Outcome {
	case Unchecked:
		return "Not checked yet."
	case Found:
		return r.explainFound()
	case NoName:
		return r.explainNoName()
	case NoRecord:
		return r.explainNoRecord()
	case OtherValue:
		return r.explainOther()
	case Loop:
		return "The CNAME records form a loop."
	case TooLong:
		return fmt.Sprintf("The chain of CNAME records is longer than %d, which is the limit.", maxChain)
	case NotPublic:
		return "This name, or one that it leads to, is not in the public DNS. Such names are neither shown nor followed."
	case Timeout:
		return "The name servers did not answer in time. Try again in a moment."
	case ServerFailed:
		return "The name servers of this name failed (SERVFAIL). Check that they work and that DNSSEC is set up correctly."
	case Refused:
		return "The name server refused the query (REFUSED)."
	}
	return "The look-up failed. Try again in a moment."
}

func (r Record) explainFound() string {
	switch {
	case r.HasAddress:
		return "The name leads to this service."
	case r.Type != "TXT" && len(r.Values) > 1:
		return "The record exists and reaches the default domain through other names."
	}
	return "The record exists."
}

func (r Record) explainNoName() string {
	if len(r.Values) > 0 {
		return "It points to a name that does not exist (NXDOMAIN)."
	}
	return "This name does not exist (NXDOMAIN). A new record may take some minutes to appear."
}

func (r Record) explainNoRecord() string {
	if r.Type == "CNAME" && r.HasAddress {
		return "The name has addresses (A or AAAA records) but no CNAME record. The apex of a zone cannot have one, " +
			"and the proxy of a DNS provider hides it."
	}
	if r.Type == Alias {
		return "The name exists but has no addresses (A or AAAA records). A new record may take some minutes to appear."
	}
	return fmt.Sprintf("The name exists but has no %s record. A new record may take some minutes to appear.", r.Type)
}

func (r Record) explainOther() string {
	switch {
	case r.HasAddress:
		return "The name has addresses that are not those of this service."
	case r.Type != "TXT":
		return "It points to another name, not to the default domain."
	case len(r.Values) > 1:
		return "There are TXT records, but none has this value."
	}
	return "There is a TXT record, but it has another value."
}

// Result is the result of a verification. For an apex, CNAME is of type Alias.
type Result struct{ CNAME, TXT Record }

// OK reports whether both records are right.
func (r Result) OK() bool { return r.CNAME.OK() && r.TXT.OK() }

// definite reports whether both outcomes say what DNS holds.
func (r Result) definite() bool { return r.CNAME.definite() && r.TXT.definite() }

// Checked reports whether the records were looked up.
func (r Result) Checked() bool { return r.CNAME.Outcome != Unchecked }

// Records returns both records.
func (r Result) Records() []Record { return []Record{r.CNAME, r.TXT} }

// plainName returns a DNS name in lower case without the dot at its end.
func plainName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }
