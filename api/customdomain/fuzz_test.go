package customdomain_test

import (
	"strings"
	"testing"

	"github.com/miekg/dns"

	"linkstream/api/customdomain"
)

// Invariants: every answer has an outcome, the record is found if and only if its value is there, and the values shown
// are bounded and printable.
func FuzzTXT(f *testing.F) {
	const name = "_linkstream." + host + ". "
	for _, lines := range []string{
		name + `TXT "` + challenge + `"`, name + `TXT "linkstream-" "verification=TEST"`,
		name + `TXT "a"` + "\n" + name + `TXT "b"`, name + "CNAME " + name, name + "A 192.0.2.1",
		name + "CNAME txt.example.\ntxt.example. TXT \"" + challenge + `"`,
	} {
		message := new(dns.Msg)
		for line := range strings.Lines(lines) {
			record, err := dns.NewRR(line)
			if err != nil {
				f.Fatal(err)
			}
			message.Answer = append(message.Answer, record)
		}
		packet, err := message.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(packet)
	}
	f.Fuzz(func(t *testing.T, packet []byte) {
		message := new(dns.Msg)
		_ = message.Unpack(packet) // a packet that fails half way may have left records
		r := customdomain.Record{Type: "TXT", Name: "_linkstream." + host, Value: challenge}
		customdomain.MatchTXT(new(customdomain.Verifier), &r, message.Answer)
		found := len(r.Values) == 1 && r.Values[0] == challenge
		if r.Outcome == customdomain.Unchecked || len(r.Values) > 10 || r.OK() != found {
			t.Errorf("%+v", r)
		}
		for _, value := range r.Values {
			if len(value) > 260 || strings.ContainsFunc(strings.TrimSuffix(value, "…"), unprintable) {
				t.Errorf("%q", value)
			}
		}
	})
}

func unprintable(c rune) bool { return c < ' ' || c > '~' }
