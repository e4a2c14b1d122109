package customdomain_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/miekg/dns"

	"linkstream/api/customdomain"
	"linkstream/api/customdomain/dnstest"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

const (
	host      = "go.example.com"
	target    = "sho.example"
	challenge = "linkstream-verification=TEST"
)

func newVerifier(t *testing.T, resolver string) *customdomain.Verifier {
	t.Helper()
	cfg := customdomain.DefaultConfig()
	cfg.Resolver, cfg.Timeout, cfg.Total = resolver, 5*time.Second, 20*time.Second // generous, for a busy machine
	return verifierOf(t, cfg)
}

func verifierOf(t *testing.T, cfg customdomain.Config) *customdomain.Verifier {
	t.Helper()
	return customdomain.NewVerifier(cfg, target, metrics.NewSet(), slog.New(slog.DiscardHandler))
}

func verify(t *testing.T, v *customdomain.Verifier) customdomain.Result {
	t.Helper()
	result, err := v.Verify(t.Context(), host, challenge)
	testkit.Must(t, err)
	return result
}

func TestVerify(t *testing.T) {
	server := dnstest.Start(t)
	server.Add(t, host+". CNAME sho.example.", "_linkstream."+host+`. TXT "`+challenge+`"`)
	result := verify(t, newVerifier(t, server.Addr()))

	t.Run("both records are right", func(t *testing.T) {
		if !result.OK() || !result.CNAME.OK() || !result.TXT.OK() {
			t.Errorf("%+v", result)
		}
	})
	t.Run("the result holds the required records", func(t *testing.T) {
		cname, txt := result.CNAME, result.TXT
		if cname.Type != "CNAME" || cname.Name != host || cname.Value != target ||
			txt.Type != "TXT" || txt.Name != "_linkstream."+host || txt.Value != challenge {
			t.Errorf("%+v", result)
		}
	})
	t.Run("required values are not listed among the others", func(t *testing.T) {
		if others := slices.Concat(result.CNAME.Others(), result.TXT.Others()); len(others) > 0 {
			t.Errorf("%q", others)
		}
	})
	t.Run("one record without the other is not enough", func(t *testing.T) {
		server := dnstest.Start(t)
		server.Add(t, host+". CNAME sho.example.")
		if r := verify(t, newVerifier(t, server.Addr())); r.OK() || !r.CNAME.OK() || r.TXT.Outcome != customdomain.NoName {
			t.Errorf("%+v", r)
		}
	})
}

func TestVerifyCountsLookUps(t *testing.T) {
	server := dnstest.Start(t)
	server.Add(t, host+". CNAME sho.example.")
	cfg := customdomain.DefaultConfig()
	cfg.Resolver = server.Addr()
	set := metrics.NewSet()
	v := customdomain.NewVerifier(cfg, target, set, slog.New(slog.DiscardHandler))
	for range 2 {
		verify(t, v)
	}
	for _, labels := range []string{`type="CNAME",outcome="found"`, `type="TXT",outcome="no_name"`} {
		testkit.Equal(t, labels, set.GetOrCreateCounter("linkstream_api_domain_lookups_total{"+labels+"}").Get(), 2)
	}
}

func TestVerifyCNAME(t *testing.T) {
	chain := []string{host + ". CNAME n0.example."}
	for i := range 20 {
		chain = append(chain, fmt.Sprintf("n%d.example. CNAME n%d.example.", i, i+1))
	}
	var addresses, shown []string
	for i := range 30 {
		addresses = append(addresses, fmt.Sprintf("%s. A 192.0.2.%d", host, i))
		shown = append(shown, fmt.Sprintf("192.0.2.%d", i))
	}
	for name, c := range map[string]struct {
		records   []string
		want      customdomain.Outcome
		values    []string
		addresses []string
		says      string
	}{
		"direct": {[]string{host + ". CNAME sho.example."}, customdomain.Found, []string{target}, nil, "exists"},
		"in upper case": {[]string{"GO.Example.COM. CNAME SHO.Example."},
			customdomain.Found, []string{target}, nil, "exists"},
		"through other names": {[]string{host + ". CNAME a.example.", "a.example. CNAME B.example.",
			"b.example. CNAME sho.example."},
			customdomain.Found, []string{"a.example", "b.example", target}, nil, "other names"},
		"an alias of the default domain is not followed": {[]string{host + ". CNAME sho.example.",
			"sho.example. CNAME cloud.example."}, customdomain.Found, []string{target}, nil, "exists"},
		"to another name": {[]string{host + ". CNAME other.example.", "other.example. A 192.0.2.1"},
			customdomain.OtherValue, []string{"other.example"}, nil, "another name"},
		"to a name that ends like the default domain": {[]string{host + ". CNAME not-sho.example.",
			"not-sho.example. A 192.0.2.1"}, customdomain.OtherValue, []string{"not-sho.example"}, nil, "another name"},
		"to a name that does not exist": {[]string{host + ". CNAME gone.example."},
			customdomain.NoName, []string{"gone.example"}, nil, "NXDOMAIN"},
		"to itself": {[]string{host + ". CNAME " + host + "."}, customdomain.Loop, []string{host}, nil, "loop"},
		"in a loop": {[]string{host + ". CNAME a.example.", "a.example. CNAME b.example.",
			"b.example. CNAME A.example."},
			customdomain.Loop, []string{"a.example", "b.example", "a.example"}, nil, "loop"},
		"through too many names": {chain, customdomain.TooLong,
			[]string{"n0.example", "n1.example", "n2.example", "n3.example",
				"n4.example", "n5.example", "n6.example", "n7.example"}, nil, "8"},
		"to a name of a private network": {[]string{host + ". CNAME db.internal.", "db.internal. CNAME secret.internal."},
			customdomain.NotPublic, nil, nil, "public DNS"},
		"to a name of a private network that leads to the default domain": {[]string{host + ". CNAME db.internal.",
			"db.internal. CNAME sho.example."}, customdomain.NotPublic, nil, nil, "public DNS"},
		"through public names to one of a private network": {[]string{host + ". CNAME a.example.net.",
			"a.example.net. CNAME printer.home.arpa."}, customdomain.NotPublic, []string{"a.example.net"}, nil, "public DNS"},
		"to a name without a top-level domain": {[]string{host + ". CNAME intranet.", "intranet. A 192.0.2.1"},
			customdomain.NotPublic, nil, nil, "public DNS"},
		"to a public name of a hosting company": {[]string{host + ". CNAME a.github.io."},
			customdomain.NoName, []string{"a.github.io"}, nil, "does not exist"},
		"no such name":                 {nil, customdomain.NoName, nil, nil, "NXDOMAIN"},
		"a name without CNAME records": {[]string{host + `. TXT "x"`}, customdomain.NoRecord, nil, nil, "no CNAME"},
		"a name with addresses": {[]string{host + ". A 192.0.2.1", host + ". AAAA 2001:db8::1"},
			customdomain.NoRecord, nil, []string{"192.0.2.1", "2001:db8::1"}, "addresses"},
		"a name with too many addresses to show": {addresses, customdomain.NoRecord, nil, shown[:10], "addresses"},
		"private addresses are not shown": {[]string{host + ". A 10.1.2.3", host + ". A 127.0.0.1",
			host + ". AAAA fd00::1", host + ". AAAA fe80::1"}, customdomain.NoRecord, nil, nil, "addresses"},
	} {
		t.Run(name, func(t *testing.T) {
			server := dnstest.Start(t)
			server.Add(t, c.records...)
			r := verify(t, newVerifier(t, server.Addr())).CNAME
			if r.Outcome != c.want || !slices.Equal(r.Values, c.values) || !slices.Equal(r.Addresses, c.addresses) {
				t.Errorf("%+v", r)
			}
			if !strings.Contains(r.Explanation(), c.says) {
				t.Errorf("explanation %q does not contain %q", r.Explanation(), c.says)
			}
		})
	}
}

func TestVerifyApex(t *testing.T) {
	const apex = "example.com"
	own := []string{"sho.example. A 192.0.2.1", "sho.example. A 192.0.2.2", "sho.example. AAAA 2001:db8::1",
		"sho.example. A 10.0.0.1"}
	for name, c := range map[string]struct {
		records []string
		want    customdomain.Outcome
		says    string
	}{
		"all addresses of the default domain": {[]string{"A 192.0.2.1", "A 192.0.2.2", "AAAA 2001:db8::1"},
			customdomain.Found, "leads to this service"},
		"one of them": {[]string{"AAAA 2001:db8::1"}, customdomain.Found, "leads to this service"},
		"one that the operator has named": {[]string{"A 192.0.2.2", "A 198.51.100.1"}, customdomain.Found,
			"leads to this service"},
		"another one": {[]string{"A 203.0.113.1"}, customdomain.OtherValue,
			"not those of this service"},
		"another one besides": {[]string{"A 192.0.2.1", "AAAA 2001:db8::2"}, customdomain.OtherValue,
			"not those of this service"},
		"a private one besides": {[]string{"A 192.0.2.1", "A 10.1.2.3"}, customdomain.OtherValue,
			"not those of this service"},
		"a CNAME record":                       {[]string{"CNAME sho.example."}, customdomain.Found, "exists"},
		"a CNAME record that leads to another": {[]string{"CNAME other.example."}, customdomain.NoName, "does not exist"},
		"no addresses":                         {[]string{`TXT "x"`}, customdomain.NoRecord, "no addresses"},
		"nothing":                              {nil, customdomain.NoName, "NXDOMAIN"},
	} {
		t.Run(name, func(t *testing.T) {
			server := dnstest.Start(t)
			server.Add(t, own...)
			server.Add(t, "_linkstream."+apex+`. TXT "`+challenge+`"`)
			for _, record := range c.records {
				server.Add(t, apex+". "+record)
			}
			cfg := customdomain.DefaultConfig()
			cfg.Resolver, cfg.Addresses = server.Addr(), []netip.Addr{netip.MustParseAddr("198.51.100.1")}
			v := verifierOf(t, cfg)
			shown := []string{"198.51.100.1", "192.0.2.1", "192.0.2.2", "2001:db8::1"}
			testkit.Equal(t, "addresses to set", v.Expected(t.Context(), apex, challenge).CNAME.Own, shown)
			result, err := v.Verify(t.Context(), apex, challenge)
			testkit.Must(t, err)
			r := result.CNAME
			if r.Type != customdomain.Alias || r.Value != target || r.Outcome != c.want ||
				result.OK() != (c.want == customdomain.Found) {
				t.Errorf("%+v", r)
			}
			if !strings.Contains(r.Explanation(), c.says) {
				t.Errorf("explanation %q does not contain %q", r.Explanation(), c.says)
			}
		})
	}
	t.Run("the default domain's addresses are not known", func(t *testing.T) {
		server := dnstest.Start(t)
		server.Add(t, apex+". A 192.0.2.1")
		result, err := newVerifier(t, server.Addr()).Verify(t.Context(), apex, challenge)
		testkit.Must(t, err)
		testkit.Equal(t, "outcome", result.CNAME.Outcome, customdomain.Failed) // says nothing about the owner's records
	})
	t.Run("a name below another one needs a CNAME record", func(t *testing.T) {
		server := dnstest.Start(t)
		server.Add(t, append(own, host+". A 192.0.2.1")...)
		testkit.Equal(t, "outcome", verify(t, newVerifier(t, server.Addr())).CNAME.Outcome, customdomain.NoRecord)
	})
}

func TestVerifyTXT(t *testing.T) {
	const name = "_linkstream." + host + ". "
	many := slices.Repeat([]string{name + `TXT "other"`}, 30)
	for i := range many {
		many[i] = fmt.Sprintf(`%s TXT "other %02d %s"`, name, i, strings.Repeat("x", 200)) // does not fit a datagram
	}
	for title, c := range map[string]struct {
		records []string
		want    customdomain.Outcome
		values  int
		says    string
	}{
		"one string":         {[]string{name + `TXT "` + challenge + `"`}, customdomain.Found, 1, "exists"},
		"in several strings": {[]string{name + `TXT "linkstream-" "verification=" "TEST"`}, customdomain.Found, 1, "exists"},
		"among other records": {[]string{name + `TXT "a"`, name + `TXT "` + challenge + `"`, name + `TXT "b"`},
			customdomain.Found, 1, "exists"},
		"of a name in upper case": {[]string{strings.ToUpper(name) + `TXT "` + challenge + `"`}, customdomain.Found,
			1, "exists"},
		"of the target of an alias": {[]string{name + "CNAME txt.example.", `txt.example. TXT "` + challenge + `"`},
			customdomain.Found, 1, "exists"},
		"of an alias into a private network": {[]string{name + "CNAME db.internal.", `db.internal. TXT "secret"`},
			customdomain.NotPublic, 0, "public DNS"},
		"over TCP":              {append(many, name+`TXT "`+challenge+`"`), customdomain.Found, 1, "exists"},
		"other values over TCP": {many, customdomain.OtherValue, 10, "none"},
		"another value": {[]string{name + `TXT "linkstream-verification=test"`},
			customdomain.OtherValue, 1, "another value"},
		"the value with a suffix": {[]string{name + `TXT "` + challenge + `x"`},
			customdomain.OtherValue, 1, "another value"},
		"the value split over two records": {[]string{name + `TXT "linkstream-verification="`, name + `TXT "TEST"`},
			customdomain.OtherValue, 2, "none"},
		"at the host, without the prefix": {[]string{host + `. TXT "` + challenge + `"`}, customdomain.NoName, 0, "NXDOMAIN"},
		"a name without TXT records":      {[]string{name + "A 192.0.2.1"}, customdomain.NoRecord, 0, "no TXT record"},
	} {
		t.Run(title, func(t *testing.T) {
			server := dnstest.Start(t)
			server.Add(t, c.records...)
			r := verify(t, newVerifier(t, server.Addr())).TXT
			if r.Outcome != c.want || len(r.Values) != c.values || !strings.Contains(r.Explanation(), c.says) {
				t.Errorf("%q: %+v", r.Explanation(), r)
			}
		})
	}
}

func TestVerifyIgnoresTXTRecordsOfOtherNames(t *testing.T) {
	server := dnstest.Start(t)
	server.Handle("_linkstream."+host, func(w dns.ResponseWriter, query *dns.Msg) {
		reply := new(dns.Msg).SetReply(query)
		reply.Answer = []dns.RR{record(t, `other.example. TXT "`+challenge+`"`)}
		_ = w.WriteMsg(reply)
	})
	if r := verify(t, newVerifier(t, server.Addr())).TXT; r.Outcome != customdomain.NoRecord {
		t.Errorf("%+v", r)
	}
}

func TestVerifyEscapesAndTruncatesValues(t *testing.T) {
	server := dnstest.Start(t)
	server.Add(t, "_linkstream."+host+`. TXT "\000\027\226\128\174`+strings.Repeat("x", 240)+
		`" "`+strings.Repeat("y", 200)+`"`)
	values := verify(t, newVerifier(t, server.Addr())).TXT.Values
	if len(values) != 1 || !strings.HasPrefix(values[0], `\000\027\226\128\174xxx`) || len(values[0]) > 260 {
		t.Errorf("%q", values)
	}
}

func TestVerifyWithFailingServers(t *testing.T) {
	for name, c := range map[string]struct {
		code int
		want customdomain.Outcome
		says string
	}{
		"SERVFAIL": {dns.RcodeServerFailure, customdomain.ServerFailed, "SERVFAIL"},
		"REFUSED":  {dns.RcodeRefused, customdomain.Refused, "REFUSED"},
		"NOTAUTH":  {dns.RcodeNotAuth, customdomain.Failed, "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			server := dnstest.Start(t)
			server.Fail(host, c.code)
			server.Fail("_linkstream."+host, c.code)
			for _, r := range verify(t, newVerifier(t, server.Addr())).Records() {
				if r.Outcome != c.want || !strings.Contains(r.Explanation(), c.says) {
					t.Errorf("%q: %+v", r.Explanation(), r)
				}
			}
		})
	}
	t.Run("SERVFAIL within a chain of aliases", func(t *testing.T) {
		server := dnstest.Start(t)
		server.Add(t, host+". CNAME a.example.")
		server.Fail("a.example", dns.RcodeServerFailure)
		r := verify(t, newVerifier(t, server.Addr())).CNAME
		if r.Outcome != customdomain.ServerFailed || !slices.Equal(r.Values, []string{"a.example"}) {
			t.Errorf("%+v", r)
		}
	})
	t.Run("closed port", func(t *testing.T) {
		conn, err := net.ListenPacket("udp", "127.0.0.1:0")
		testkit.Must(t, err)
		conn.Close()
		if r := verify(t, newVerifier(t, conn.LocalAddr().String())).CNAME; r.Outcome != customdomain.Failed {
			t.Errorf("%+v", r)
		}
	})
	t.Run("no support of EDNS0 is no failure", func(t *testing.T) {
		server := dnstest.Start(t)
		server.Handle(host, func(w dns.ResponseWriter, query *dns.Msg) {
			reply := new(dns.Msg).SetReply(query)
			if query.IsEdns0() != nil {
				reply = new(dns.Msg).SetRcodeFormatError(query)
				reply.Question = nil
			} else {
				reply.Answer = []dns.RR{record(t, host+". CNAME sho.example.")}
			}
			_ = w.WriteMsg(reply)
		})
		if r := verify(t, newVerifier(t, server.Addr())).CNAME; !r.OK() {
			t.Errorf("%+v", r)
		}
	})
}

func record(t *testing.T, line string) dns.RR {
	t.Helper()
	r, err := dns.NewRR(line)
	if err != nil {
		t.Error(err)
	}
	return r
}

func TestVerifyIsBoundedInTime(t *testing.T) {
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	testkit.Must(t, err)
	defer silent.Close()
	t.Run("per query", func(t *testing.T) {
		cfg := customdomain.Config{Resolver: silent.LocalAddr().String(), Timeout: 50 * time.Millisecond, Total: time.Minute}
		testkit.Takes(t, 5*time.Second, func(int) {
			for _, r := range verify(t, verifierOf(t, cfg)).Records() {
				if r.Outcome != customdomain.Timeout || !strings.Contains(r.Explanation(), "in time") {
					t.Errorf("%+v", r)
				}
			}
		})
	})
	t.Run("per verification", func(t *testing.T) {
		cfg := customdomain.Config{Resolver: silent.LocalAddr().String(), Timeout: time.Minute, Total: 50 * time.Millisecond}
		testkit.Takes(t, 5*time.Second, func(int) {
			if r := verify(t, verifierOf(t, cfg)).CNAME; r.Outcome != customdomain.Timeout {
				t.Errorf("%+v", r)
			}
		})
	})
	t.Run("and sends a lost datagram again", func(t *testing.T) {
		server := dnstest.Start(t)
		lost := make(chan struct{}, 1)
		server.Handle(host, func(w dns.ResponseWriter, query *dns.Msg) {
			select {
			case lost <- struct{}{}:
				return
			default:
			}
			reply := new(dns.Msg).SetReply(query)
			reply.Answer = []dns.RR{record(t, host+". CNAME sho.example.")}
			_ = w.WriteMsg(reply)
		})
		cfg := customdomain.Config{Resolver: server.Addr(), Timeout: time.Second, Total: 20 * time.Second}
		if r := verify(t, verifierOf(t, cfg)).CNAME; !r.OK() || len(lost) != 1 {
			t.Errorf("%+v", r)
		}
	})
}

func TestVerifyIgnoresRepliesToOtherQueries(t *testing.T) {
	for name, spoil := range map[string]func(reply *dns.Msg){
		"another name":   func(reply *dns.Msg) { reply.Question[0].Name = "other.example." },
		"another type":   func(reply *dns.Msg) { reply.Question[0].Qtype = dns.TypeA },
		"another class":  func(reply *dns.Msg) { reply.Question[0].Qclass = dns.ClassCHAOS },
		"another ID":     func(reply *dns.Msg) { reply.Id++ },
		"another opcode": func(reply *dns.Msg) { reply.Opcode = dns.OpcodeStatus },
		"no question":    func(reply *dns.Msg) { reply.Question = nil },
		"not a response": func(reply *dns.Msg) { reply.Response = false },
	} {
		t.Run(name, func(t *testing.T) {
			server := dnstest.Start(t)
			server.Handle(host, func(w dns.ResponseWriter, query *dns.Msg) {
				wrong := new(dns.Msg).SetReply(query)
				wrong.Answer = []dns.RR{record(t, host+". CNAME sho.example.")}
				spoil(wrong)
				_ = w.WriteMsg(wrong)
				_, _ = io.WriteString(w.(io.Writer), "rubbish")
				right := new(dns.Msg).SetReply(query)
				right.Answer = []dns.RR{record(t, host+". CNAME right.example.")}
				_ = w.WriteMsg(right)
			})
			if r := verify(t, newVerifier(t, server.Addr())).CNAME; !slices.Equal(r.Values, []string{"right.example"}) {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestSystemResolver(t *testing.T) {
	write := func(t *testing.T, content string) (path string) {
		t.Helper()
		path = filepath.Join(t.TempDir(), "resolv.conf")
		testkit.Must(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	t.Run("has at most three name servers", func(t *testing.T) {
		servers, err := customdomain.ReadServers(write(t, "search example.com\nnameserver 192.0.2.1\n"+
			"nameserver 2001:db8::1\nnameserver 192.0.2.3\nnameserver 192.0.2.4\n"))
		if err != nil || !slices.Equal(servers, []string{"192.0.2.1:53", "[2001:db8::1]:53", "192.0.2.3:53"}) {
			t.Errorf("%q, %v", servers, err)
		}
	})
	for name, path := range map[string]string{
		"without name servers": write(t, "search example.com\n"), "without a file": filepath.Join(t.TempDir(), "none"),
	} {
		t.Run(name+" fails verifications and names the flag to set", func(t *testing.T) {
			v := verifierOf(t, customdomain.Config{System: path, Timeout: time.Second, Total: time.Second})
			result, err := v.Verify(t.Context(), host, challenge)
			var notChecked *customdomain.NotCheckedError
			if !errors.As(err, &notChecked) || !strings.Contains(notChecked.Message, "no DNS resolver") ||
				!strings.Contains(err.Error(), "-api.resolver") || result.Checked() {
				t.Errorf("%v, %+v", err, result)
			}
		})
	}
}

func TestVerifyIsBoundedInConcurrency(t *testing.T) {
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	testkit.Must(t, err)
	defer silent.Close()
	cfg := customdomain.Config{Resolver: silent.LocalAddr().String(), Timeout: time.Second, Total: 2 * time.Second}
	v := verifierOf(t, cfg)
	var refused atomic.Int64
	var verifying sync.WaitGroup
	for range 40 {
		verifying.Go(func() {
			var notChecked *customdomain.NotCheckedError
			if _, err := v.Verify(t.Context(), host, challenge); errors.As(err, &notChecked) && notChecked.Wait == 0 {
				refused.Add(1)
			}
		})
	}
	verifying.Wait()
	if n := refused.Load(); n < 8 {
		t.Errorf("%d of 40 concurrent verifications were refused, want at least 8", n)
	}
}

func TestConfig(t *testing.T) {
	for resolver, valid := range map[string]bool{
		"": true, "192.0.2.1:53": true, "[2001:db8::1]:5353": true, "dns.example:53": true,
		"192.0.2.1": false, ":53": false, "192.0.2.1:0": false, "192.0.2.1:x": false, "192.0.2.1:65536": false,
	} {
		cfg := customdomain.DefaultConfig()
		cfg.Resolver = resolver
		err := cfg.Validate()
		if (err == nil) != valid || err != nil && !strings.Contains(err.Error(), "-api.resolver") {
			t.Errorf("%q: %v", resolver, err)
		}
	}
}

func TestTarget(t *testing.T) {
	for host, want := range map[schema.Host]bool{
		"sho.example": true, "xn--krz-hoa.example": true, "127.0.0.1": false, "::1": false, "localhost": false,
	} {
		v := customdomain.NewVerifier(customdomain.DefaultConfig(), host, metrics.NewSet(), slog.New(slog.DiscardHandler))
		if got, usable := v.Target(); got != string(host) || usable != want {
			t.Errorf("%q: %q, usable %t", host, got, usable)
		}
	}
}

func TestVerifyDoesNotLookUpNamesOfPrivateNetworks(t *testing.T) {
	server := dnstest.Start(t)
	server.Add(t, "db.internal. A 192.0.2.1", `_linkstream.db.internal. TXT "secret"`)
	v := newVerifier(t, server.Addr())
	for _, name := range []string{"db.internal", "none.internal", "printer.home.arpa"} { // whether one exists or not
		result, err := v.Verify(t.Context(), name, challenge)
		testkit.Must(t, err)
		for _, r := range result.Records() {
			if r.Outcome != customdomain.NotPublic || len(r.Values) > 0 || r.HasAddress {
				t.Errorf("%+v", r)
			}
		}
	}
}
