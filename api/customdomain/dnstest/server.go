// Package dnstest runs a DNS resolver on the loopback interface for tests.
package dnstest

import (
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// Server is a resolver over UDP and TCP. It answers from the records that tests add.
type Server struct {
	addr string

	mu       sync.Mutex
	records  map[string][]dns.RR // by name in lower case
	handlers map[string]dns.HandlerFunc
	queries  int
}

// Start starts a server that stops when the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{records: map[string][]dns.RR{}, handlers: map[string]dns.HandlerFunc{}}
	packets, listener := listen(t)
	s.addr = packets.LocalAddr().String()
	for _, server := range []*dns.Server{{PacketConn: packets}, {Listener: listener}} {
		server.Handler = s
		server.IdleTimeout = func() time.Duration { return time.Second }
		started, stopped := make(chan struct{}), make(chan error, 1)
		server.NotifyStartedFunc = func() { close(started) }
		go func() { stopped <- server.ActivateAndServe() }()
		<-started
		t.Cleanup(func() {
			if err := server.Shutdown(); err != nil {
				t.Error(err)
			}
			if err := <-stopped; err != nil {
				t.Error(err)
			}
		})
	}
	return s
}

// listen returns a UDP and a TCP socket with the same port.
func listen(t testing.TB) (net.PacketConn, net.Listener) {
	t.Helper()
	for range 100 {
		packets, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if listener, err := net.Listen("tcp", packets.LocalAddr().String()); err == nil {
			return packets, listener
		}
		packets.Close()
	}
	t.Fatal("no port is free for both UDP and TCP")
	return nil, nil
}

// Addr returns the address of the server.
func (s *Server) Addr() string { return s.addr }

// Queries returns the number of queries received.
func (s *Server) Queries() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queries
}

// Add adds records. Each is a line of a zone file: `go.example.com. CNAME sho.example.`
func (s *Server) Add(t testing.TB, lines ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range lines {
		record, err := dns.NewRR(line)
		if err != nil || record == nil {
			t.Fatalf("record %q: %v", line, err)
		}
		name := strings.ToLower(record.Header().Name)
		s.records[name] = append(s.records[name], record)
	}
}

// Remove removes all records of a name.
func (s *Server) Remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.records, dns.CanonicalName(name))
}

// Handle lets handle answer the queries for a name.
func (s *Server) Handle(name string, handle dns.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handlers[dns.CanonicalName(name)] = handle
}

// Fail answers the queries for a name with a response code.
func (s *Server) Fail(name string, code int) {
	s.Handle(name, func(w dns.ResponseWriter, query *dns.Msg) {
		_ = w.WriteMsg(new(dns.Msg).SetRcode(query, code))
	})
}

// ServeDNS implements dns.Handler.
func (s *Server) ServeDNS(w dns.ResponseWriter, query *dns.Msg) {
	s.mu.Lock()
	s.queries++
	name := strings.ToLower(query.Question[0].Name)
	handle := s.handlers[name]
	reply := s.reply(query, name)
	s.mu.Unlock()
	if handle != nil {
		handle(w, query)
		return
	}
	if w.LocalAddr().Network() == "udp" {
		size := dns.MinMsgSize
		if opt := query.IsEdns0(); opt != nil {
			size = int(opt.UDPSize())
		}
		reply.Truncate(size)
	}
	_ = w.WriteMsg(reply) // fails only if the client is gone
}

// reply returns the records of name and, as a recursive resolver does, of the names that its CNAME records lead to. The
// caller holds s.mu.
func (s *Server) reply(query *dns.Msg, name string) *dns.Msg {
	kind := query.Question[0].Qtype
	reply := new(dns.Msg).SetReply(query)
	for range 10 {
		records, ok := s.records[name]
		if !ok {
			reply.Rcode = dns.RcodeNameError
			return reply
		}
		next := ""
		for _, record := range records {
			cname, alias := record.(*dns.CNAME)
			if alias && kind != dns.TypeCNAME {
				next = strings.ToLower(cname.Target)
			}
			if next != "" || record.Header().Rrtype == kind {
				reply.Answer = append(reply.Answer, record)
			}
		}
		if next == "" {
			return reply
		}
		name = next
	}
	return reply
}
