package customdomain

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"
)

const (
	maxServers = 3    // of the system's, as resolv.conf(5) has it
	udpBytes   = 1232 // fits every network without fragments
)

// Config says whom to ask about DNS.
type Config struct {
	Resolver string        // address of a recursive name server; "": those that System names
	System   string        // file in the format of resolv.conf(5)
	Timeout  time.Duration // of one question to one server
	Total    time.Duration // of all questions of a verification
}

// DefaultConfig returns a configuration that works.
func DefaultConfig() Config {
	return Config{System: "/etc/resolv.conf", Timeout: 2 * time.Second, Total: 8 * time.Second}
}

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&c.Resolver, "api.resolver", c.Resolver,
		"`address`, host:port, of the DNS resolver that custom domains are verified by (default the system's)")
}

// Validate returns what is wrong with the address.
func (c *Config) Validate() error {
	if c.Resolver == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(c.Resolver)
	if err == nil && host == "" {
		err = fmt.Errorf("address %s: missing host in address", c.Resolver)
	}
	if n, bad := strconv.ParseUint(port, 10, 16); err == nil && (bad != nil || n == 0) {
		err = fmt.Errorf("address %s: port is not 1 to 65535", c.Resolver)
	}
	if err != nil {
		return fmt.Errorf("-api.resolver: %w", err)
	}
	return nil
}

// resolver asks recursive name servers.
type resolver struct {
	servers []string
	err     error // why there are no servers
	timeout time.Duration
}

func newResolver(cfg Config) *resolver {
	r := &resolver{timeout: cfg.Timeout}
	if cfg.Resolver != "" {
		r.servers = []string{cfg.Resolver}
	} else {
		r.servers, r.err = readServers(cfg.System)
	}
	return r
}

// readServers returns the name servers that a file in the format of resolv.conf(5) names.
func readServers(path string) ([]string, error) {
	config, err := dns.ClientConfigFromFile(path)
	if errors.Is(err, os.ErrNotExist) {
		err, config = nil, new(dns.ClientConfig)
	}
	if err != nil {
		return nil, fmt.Errorf("read name servers: %w", err)
	}
	var servers []string
	for _, server := range config.Servers[:min(len(config.Servers), maxServers)] {
		servers = append(servers, net.JoinHostPort(server, config.Port))
	}
	if len(servers) == 0 {
		return nil, fmt.Errorf("%s names no name server: set -api.resolver", path)
	}
	return servers, nil
}

// answer is what a resolver says to a question.
type answer struct {
	records []dns.RR
	outcome Outcome // Found if the name exists, whether with records or without
	err     error   // why, if it is Failed
}

// ask returns what the first server says that knows an answer. If there is none it is the last failure.
func (r *resolver) ask(ctx context.Context, name string, kind uint16) (a answer) {
	servers := r.servers
	if len(servers) == 1 {
		servers = []string{servers[0], servers[0]} // a datagram may be lost
	}
	for _, server := range servers {
		a = r.askServer(ctx, server, name, kind)
		if a.outcome == Found || a.outcome == NoName || ctx.Err() != nil {
			break
		}
	}
	return a
}

func (r *resolver) askServer(ctx context.Context, server, name string, kind uint16) answer {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	question := new(dns.Msg).SetQuestion(dns.Fqdn(name), kind)
	question.SetEdns0(udpBytes, false)
	reply, err := exchange(ctx, server, question)
	if err == nil && (reply.Rcode == dns.RcodeFormatError || reply.Rcode == dns.RcodeNotImplemented) {
		question.Extra = nil // a server from before EDNS0 (RFC 6891, section 7)
		reply, err = exchange(ctx, server, question)
	}
	var failure net.Error
	switch {
	case errors.As(err, &failure) && failure.Timeout():
		return answer{outcome: Timeout}
	case err != nil:
		return answer{outcome: Failed, err: err}
	}
	switch reply.Rcode {
	case dns.RcodeSuccess:
		return answer{outcome: Found, records: reply.Answer}
	case dns.RcodeNameError:
		return answer{outcome: NoName}
	case dns.RcodeServerFailure:
		return answer{outcome: ServerFailed}
	case dns.RcodeRefused:
		return answer{outcome: Refused}
	}
	return answer{outcome: Failed, err: fmt.Errorf("ask %s: response code %d", server, reply.Rcode)}
}

// exchange asks over UDP, and again over TCP what does not fit.
func exchange(ctx context.Context, server string, question *dns.Msg) (*dns.Msg, error) {
	reply, err := exchangeOver(ctx, "udp", server, question)
	if err == nil && reply.Truncated {
		reply, err = exchangeOver(ctx, "tcp", server, question)
	}
	return reply, err
}

// exchangeOver sends a question and waits for its reply, which has the same ID and repeats the question. Any other
// datagram may be anyone's (RFC 5452, section 9.1), so it is ignored.
func exchangeOver(ctx context.Context, network, server string, question *dns.Msg) (*dns.Msg, error) {
	client := dns.Client{Net: network, UDPSize: udpBytes}
	conn, err := client.DialContext(ctx, server)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", server, err)
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, fmt.Errorf("ask %s: %w", server, err)
		}
	}
	question.Id = dns.Id()
	if err := conn.WriteMsg(question); err != nil {
		return nil, fmt.Errorf("ask %s: %w", server, err)
	}
	for {
		packet, err := conn.ReadMsgHeader(nil)
		if errors.Is(err, dns.ErrShortRead) && network == "udp" {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("read reply of %s: %w", server, err)
		}
		reply := new(dns.Msg)
		err = reply.Unpack(packet)
		switch {
		case answers(reply, question) && (err == nil || reply.Truncated):
			return reply, nil
		case network != "udp":
			return nil, errors.Join(fmt.Errorf("read reply of %s: it is none to the question", server), err)
		}
	}
}

// answers reports whether reply is one to question. A server that cannot read a question may be unable to repeat it.
func answers(reply, question *dns.Msg) bool {
	if !reply.Response || reply.Id != question.Id || reply.Opcode != dns.OpcodeQuery {
		return false
	}
	if len(reply.Question) != 1 {
		return len(reply.Question) == 0 && reply.Rcode == dns.RcodeFormatError
	}
	got, want := reply.Question[0], question.Question[0]
	return got.Qtype == want.Qtype && got.Qclass == want.Qclass && strings.EqualFold(got.Name, want.Name)
}
