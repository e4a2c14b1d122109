// Package dnstest has a DNS resolver on the loopback interface for tests.
package dnstest

import (
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// Server is a resolver, over UDP and TCP, of a world that holds only the records it has been given.
type Server struct {
	addr string

	mu       sync.Mutex
	records  map[string][]dns.RR // by name in lower case
	handlers map[string]dns.HandlerFunc
	asked    int
}

// Start starts a server that ends with the test.
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

// listen returns sockets of both protocols that have the same port.
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
	t.Fatal("found no port that is free for UDP and TCP")
	return nil, nil
}

// Addr returns the server's address.
func (s *Server) Addr() string { return s.addr }

// Asked returns how many questions there were.
func (s *Server) Asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// Add adds records, each a line of a zone file: `go.example.com. CNAME sho.example.`
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

// Handle has questions about a name answered by handle.
func (s *Server) Handle(name string, handle dns.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handlers[dns.CanonicalName(name)] = handle
}

// Fail has questions about a name answered with a response code.
func (s *Server) Fail(name string, code int) {
	s.Handle(name, func(w dns.ResponseWriter, question *dns.Msg) {
		_ = w.WriteMsg(new(dns.Msg).SetRcode(question, code))
	})
}

// ServeDNS implements dns.Handler.
func (s *Server) ServeDNS(w dns.ResponseWriter, question *dns.Msg) {
	s.mu.Lock()
	s.asked++
	name := strings.ToLower(question.Question[0].Name)
	handle := s.handlers[name]
	reply := s.reply(question, name)
	s.mu.Unlock()
	if handle != nil {
		handle(w, question)
		return
	}
	if w.LocalAddr().Network() == "udp" {
		size := dns.MinMsgSize
		if opt := question.IsEdns0(); opt != nil {
			size = int(opt.UDPSize())
		}
		reply.Truncate(size)
	}
	_ = w.WriteMsg(reply) // a client that has gone will not miss it
}

// reply answers with the records of name, and of the names that CNAME records lead to from there. s.mu is locked.
func (s *Server) reply(question *dns.Msg, name string) *dns.Msg {
	kind := question.Question[0].Qtype
	reply := new(dns.Msg).SetReply(question)
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
