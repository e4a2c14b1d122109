package customdomain

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"
)

const (
	maxServers = 3    // name servers of the system; resolv.conf(5) has the same limit
	udpBytes   = 1232 // fits every network without fragmentation (DNS flag day 2020)
)

// Config is the configuration of verifications.
type Config struct {
	Resolver string        // address of a recursive name server; "": the name servers in the file System
	System   string        // file in the format of resolv.conf(5)
	Timeout  time.Duration // of one query to one server
	Total    time.Duration // of all queries of a verification
	// Addresses are the addresses of the service, in addition to the default domain's addresses; set by the service.
	Addresses []netip.Addr
}

// DefaultConfig returns a configuration that works.
func DefaultConfig() Config {
	return Config{System: "/etc/resolv.conf", Timeout: 2 * time.Second, Total: 8 * time.Second}
}

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&c.Resolver, "api.resolver", c.Resolver,
		"`address` (host:port) of the DNS resolver that verifies custom domains (default the system's)")
}

// Validate returns an error if Resolver is not an address.
func (c *Config) Validate() error {
	if c.Resolver == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(c.Resolver)
	if err == nil && host == "" {
		err = fmt.Errorf("address %s: missing host", c.Resolver)
	}
	if n, bad := strconv.ParseUint(port, 10, 16); err == nil && (bad != nil || n == 0) {
		err = fmt.Errorf("address %s: port is not 1 to 65535", c.Resolver)
	}
	if err != nil {
		return fmt.Errorf("-api.resolver: %w", err)
	}
	return nil
}

// resolver queries recursive name servers.
type resolver struct {
	servers []string
	err     error // set if there are no servers
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

// readServers returns the name servers in a file in the format of resolv.conf(5).
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
		return nil, fmt.Errorf("%s lists no name server: set -api.resolver", path)
	}
	return servers, nil
}

// answer is a resolver's answer to a query.
type answer struct {
	records []dns.RR
	outcome Outcome // Found if the name exists, with or without records
	err     error   // the cause of Failed
}

// query asks the servers in order until one knows the answer, and returns that answer or the last failure.
func (r *resolver) query(ctx context.Context, name string, kind uint16) (a answer) {
	servers := r.servers
	if len(servers) == 1 {
		servers = []string{servers[0], servers[0]} // datagrams get lost
	}
	for _, server := range servers {
		a = r.queryServer(ctx, server, name, kind)
		if a.outcome == Found || a.outcome == NoName || ctx.Err() != nil {
			break
		}
	}
	return a
}

func (r *resolver) queryServer(ctx context.Context, server, name string, kind uint16) answer {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	query := new(dns.Msg).SetQuestion(dns.Fqdn(name), kind)
	query.SetEdns0(udpBytes, false)
	reply, err := exchange(ctx, server, query)
	if err == nil && (reply.Rcode == dns.RcodeFormatError || reply.Rcode == dns.RcodeNotImplemented) {
		query.Extra = nil // the server does not support EDNS0 (RFC 6891, section 7)
		reply, err = exchange(ctx, server, query)
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
	return answer{outcome: Failed, err: fmt.Errorf("query %s: response code %d", server, reply.Rcode)}
}

// exchange sends a query over UDP, and again over TCP if the reply does not fit a datagram.
func exchange(ctx context.Context, server string, query *dns.Msg) (*dns.Msg, error) {
	reply, err := exchangeOver(ctx, "udp", server, query)
	if err == nil && reply.Truncated {
		reply, err = exchangeOver(ctx, "tcp", server, query)
	}
	return reply, err
}

// exchangeOver sends a query and waits for its reply, which has the query's ID and repeats its question. Other
// datagrams are ignored, because anyone may have sent them (RFC 5452, section 9.1).
func exchangeOver(ctx context.Context, network, server string, query *dns.Msg) (*dns.Msg, error) {
	client := dns.Client{Net: network, UDPSize: udpBytes}
	conn, err := client.DialContext(ctx, server)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", server, err)
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, fmt.Errorf("query %s: %w", server, err)
		}
	}
	query.Id = dns.Id()
	if err := conn.WriteMsg(query); err != nil {
		return nil, fmt.Errorf("query %s: %w", server, err)
	}
	for {
		packet, err := conn.ReadMsgHeader(nil)
		if errors.Is(err, dns.ErrShortRead) && network == "udp" {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("read reply from %s: %w", server, err)
		}
		reply := new(dns.Msg)
		err = reply.Unpack(packet)
		switch {
		case answers(reply, query) && (err == nil || reply.Truncated):
			return reply, nil
		case network != "udp":
			return nil, errors.Join(fmt.Errorf("read reply from %s: it does not match the query", server), err)
		}
	}
}

// answers reports whether reply answers query. A server that cannot parse the query (FORMERR) may leave the question
// out.
func answers(reply, query *dns.Msg) bool {
	if !reply.Response || reply.Id != query.Id || reply.Opcode != dns.OpcodeQuery {
		return false
	}
	if len(reply.Question) != 1 {
		return len(reply.Question) == 0 && reply.Rcode == dns.RcodeFormatError
	}
	got, want := reply.Question[0], query.Question[0]
	return got.Qtype == want.Qtype && got.Qclass == want.Qclass && strings.EqualFold(got.Name, want.Name)
}
