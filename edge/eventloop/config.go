package eventloop

import (
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"time"

	"linkstream/schema/service"
)

// Config has the bounds of a Server.
type Config struct {
	Loops          int           // AutoLoops: one per two CPUs; 0: none, goroutines serve on package net; not a flag
	ReadTimeout    time.Duration // for a request, from its first byte, or from accept; not a flag
	WriteTimeout   time.Duration // for an answer; not a flag
	IdleTimeout    time.Duration // between an answer and the next request; not a flag
	MaxHeaderBytes int           // of an ordinary request; not a flag
	MaxLargeBytes  int           // of the header of any request, see Server.serveLarge; not a flag

	MaxConnections           int
	MaxConnectionsPerAddress int                   // of one IPv4 address or IPv6 /64; 0: no bound
	Exempt                   func(netip.Addr) bool // addresses that MaxConnectionsPerAddress does not bound; nil: none
	MaxHandshakes            int                   // of TLS, under way
	MaxHandshakesPerAddress  int                   // of one IPv4 address or IPv6 /48; 0: no bound
	HandshakeCPUs            int                   // on which they compute; 0: half of all
	// ProxyProtocol means that the Exempt addresses are proxies that speak the PROXY protocol: each of their
	// connections begins with the address of its client.
	ProxyProtocol bool
}

// AutoLoops asks for a loop per two CPUs, and eight at most.
const AutoLoops = -1

// DefaultConfig returns a configuration that works.
func DefaultConfig() Config {
	return Config{
		Loops:          AutoLoops,
		ReadTimeout:    5 * time.Second,
		WriteTimeout:   5 * time.Second,
		IdleTimeout:    75 * time.Second, // more than the minute after which load balancers drop idle connections
		MaxHeaderBytes: 8 << 10,
		MaxLargeBytes:  32 << 10, // cookies of a site whose subdomain the short domain is
		MaxConnections: service.DefaultConnections,
		// An office or a mobile network behind one address stays below this, as each visitor has one connection for a moment.
		MaxConnectionsPerAddress: 1 << 10,
		MaxHandshakes:            4 << 10,
		// A handshake takes about two times the way to the client: a thousand new visitors per second behind one address,
		// 60 ms away.
		MaxHandshakesPerAddress: 128,
	}
}

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.IntVar(&c.MaxConnections, "edge.max-connections", c.MaxConnections,
		"most `connections` at the same time, fewer by default where the limit of open files is lower; "+
			"a further one takes the place of the one that has been idle longest")
	fs.IntVar(&c.MaxConnectionsPerAddress, "edge.max-connections-per-address", c.MaxConnectionsPerAddress,
		"most `connections` of one IPv4 address or IPv6 /64 at the same time, trusted proxies exempt; 0: no bound")
	fs.IntVar(&c.MaxHandshakes, "edge.max-handshakes", c.MaxHandshakes,
		"most TLS `handshakes` under way; a further one takes the place of the one that began first")
	fs.IntVar(&c.MaxHandshakesPerAddress, "edge.max-handshakes-per-address", c.MaxHandshakesPerAddress,
		"most TLS `handshakes` of one IPv4 address or IPv6 /48 under way, trusted proxies exempt; 0: no bound")
	fs.IntVar(&c.HandshakeCPUs, "edge.handshake-cpus", c.HandshakeCPUs,
		"`number` of CPUs on which TLS handshakes compute, "+
			"so that a flood of them leaves the others to redirects; 0: half of them")
	fs.BoolVar(&c.ProxyProtocol, "edge.proxy-protocol", c.ProxyProtocol,
		"connections of -edge.trusted-proxies begin with the PROXY protocol, version 1 or 2, which names the client")
}

// Validate returns every invalid setting.
func (c *Config) Validate() error {
	var errs []error
	if c.MaxConnections < 1 {
		errs = append(errs, fmt.Errorf("-edge.max-connections: %d is not above zero", c.MaxConnections))
	}
	if c.MaxConnectionsPerAddress < 0 {
		errs = append(errs, fmt.Errorf("-edge.max-connections-per-address: %d is below zero", c.MaxConnectionsPerAddress))
	}
	if c.MaxHandshakes < 1 {
		errs = append(errs, fmt.Errorf("-edge.max-handshakes: %d is not above zero", c.MaxHandshakes))
	}
	if c.MaxHandshakesPerAddress < 0 {
		errs = append(errs, fmt.Errorf("-edge.max-handshakes-per-address: %d is below zero", c.MaxHandshakesPerAddress))
	}
	if c.HandshakeCPUs < 0 {
		errs = append(errs, fmt.Errorf("-edge.handshake-cpus: %d is below zero", c.HandshakeCPUs))
	}
	return errors.Join(errs...)
}

// maxAutoLoops bounds the loops of large machines: each idle loop wakes up for a connection that comes while the
// others are busy, and eight loops accept some 400,000 connections per second.
const maxAutoLoops = 8

// loopCount returns the number of loops. Half of the CPUs are left to the kernel's network, shipping and TLS: a
// loop that shares a CPU with them waits for it, and two half-busy loops cost more than one busy loop.
func (c *Config) loopCount() int {
	if c.Loops == AutoLoops {
		return min(max(1, service.CPUs()/2), maxAutoLoops)
	}
	return c.Loops
}

// handshakeCPUs returns on how many CPUs TLS handshakes compute.
func (c *Config) handshakeCPUs() int {
	if c.HandshakeCPUs == 0 {
		return max(1, service.CPUs()/2)
	}
	return c.HandshakeCPUs
}

// ReserveCPUs raises GOMAXPROCS so that Go can run a goroutine per CPU in addition to the loops, which keep their
// Ps while they wait. A program's main calls it, as it concerns the whole process. GOMAXPROCS in the environment
// takes precedence; without spare Ps, loops wait through the scheduler, which costs more.
func (c *Config) ReserveCPUs() {
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOOS == "linux" && c.Loops != 0 {
		runtime.GOMAXPROCS(service.CPUs() + c.loopCount())
	}
}
