package customdomain

import (
	"fmt"
	"strings"
)

// Outcome is what has come of looking for a record.
type Outcome string

// The outcomes.
const (
	Unchecked    Outcome = ""              // nobody has looked yet
	Found        Outcome = "found"         // the record is there
	NoName       Outcome = "no_name"       // the name does not exist (NXDOMAIN)
	NoRecord     Outcome = "no_record"     // the name has no record of the type
	OtherValue   Outcome = "other_value"   // it has, but none with the value
	Loop         Outcome = "loop"          // CNAME records lead around in a circle
	TooLong      Outcome = "too_long"      // more CNAME records in a row than are followed
	Timeout      Outcome = "timeout"       // no answer in time
	ServerFailed Outcome = "server_failed" // the resolver could not find out (SERVFAIL)
	Refused      Outcome = "refused"       // the resolver does not answer the question (REFUSED)
	Failed       Outcome = "failed"        // anything else
)

// Record is a DNS record that an owner has to set, and what has come of looking for it.
type Record struct {
	Type  string // "CNAME" or "TXT"
	Name  string // where it has to stand
	Value string // what it has to say

	Outcome Outcome
	// Values is what DNS says instead, or as well. Of CNAME records it is all names in the order in which they lead to
	// each other. It is anyone's text, although in the presentation form of RFC 1035: no character is a control
	// character, and none is outside of ASCII.
	Values []string
	// HasAddress is whether a name without CNAME record has addresses; Addresses are those of them that are public.
	HasAddress bool
	Addresses  []string
}

// OK reports whether the record is there.
func (r Record) OK() bool { return r.Outcome == Found }

// Others returns Values, but nothing if all that DNS says is the very value.
func (r Record) Others() []string {
	if len(r.Values) == 1 && r.Values[0] == r.Value {
		return nil
	}
	return r.Values
}

// State says in a word or two what has come of looking.
func (r Record) State() string {
	switch r.Outcome {
	case Found:
		return "Found"
	case NoName, NoRecord:
		return "Not found"
	case OtherValue, Loop, TooLong:
		return "Another value"
	}
	return "Not known"
}

// Explanation says in a sentence what has come of looking.
func (r Record) Explanation() string {
	switch r.Outcome {
	case Unchecked:
		return "Not looked up yet."
	case Found:
		if r.Type == "CNAME" && len(r.Values) > 1 {
			return "The record is there; it leads on through other names."
		}
		return "The record is there."
	case NoName:
		return r.explainNoName()
	case NoRecord:
		return r.explainNoRecord()
	case OtherValue:
		return r.explainOther()
	case Loop:
		return "The CNAME records lead around in a circle."
	case TooLong:
		return fmt.Sprintf("More than %d CNAME records in a row are not followed.", maxChain)
	case Timeout:
		return "The name servers did not answer in time. Try again in a moment."
	case ServerFailed:
		return "The name servers of this name failed (SERVFAIL). See whether they work, and whether DNSSEC does."
	case Refused:
		return "The name server refused the question (REFUSED)."
	}
	return "The look-up failed. Try again in a moment."
}

func (r Record) explainNoName() string {
	if len(r.Values) > 0 {
		return "It leads to a name that does not exist (NXDOMAIN)."
	}
	return "This name does not exist (NXDOMAIN). A new record may take some minutes to be seen."
}

func (r Record) explainNoRecord() string {
	switch {
	case r.Type == "CNAME" && r.HasAddress:
		return "The name has addresses (A or AAAA records), but no CNAME record. The name of a zone itself cannot " +
			"have one, and a DNS provider's proxy hides it."
	case r.Type == "CNAME" && len(r.Values) > 0:
		return "It leads to another name, and ends there."
	}
	return fmt.Sprintf("The name exists, but has no %s record. A new record may take some minutes to be seen.", r.Type)
}

func (r Record) explainOther() string {
	if r.Type == "CNAME" {
		return "It leads to another name, and ends there."
	}
	if len(r.Values) > 1 {
		return "There are TXT records, but none has this value."
	}
	return "There is a TXT record, but with another value."
}

// Result is what DNS says about a claim.
type Result struct{ CNAME, TXT Record }

// OK reports whether both records are there.
func (r Result) OK() bool { return r.CNAME.OK() && r.TXT.OK() }

// Checked reports whether they were looked up.
func (r Result) Checked() bool { return r.CNAME.Outcome != Unchecked }

// Records returns both.
func (r Result) Records() []Record { return []Record{r.CNAME, r.TXT} }

// plainName returns a name as people write it.
func plainName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }
