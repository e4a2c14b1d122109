package testengines

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"strconv"
)

const (
	loopback    = "127.0.0.1"
	firstPort   = 12000 // the lowest port to try
	portsToTry  = 100
	usualLowest = 32768 // Linux's default for the lowest port of outgoing connections
)

// freePort returns a port that nothing listens on, below the ports of outgoing connections. A client that keeps dialing
// a stopped engine would sooner or later get such a port for its own end and connect to itself, and the engine could
// not listen on it again.
func freePort() (int, error) {
	end := lowestEphemeralPort()
	if end < firstPort+portsToTry {
		end = usualLowest // no ports are left below those of outgoing connections
	}
	for range portsToTry {
		port := firstPort + rand.IntN(end-firstPort)
		l, err := net.Listen("tcp", hostPort(port))
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("find free port: %d of %d to %d are taken", portsToTry, firstPort, end-1)
}

// freePorts returns n different free ports.
func freePorts(n int) ([]int, error) {
	var ports []int
	seen := map[int]bool{}
	for len(ports) < n {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		if !seen[port] {
			seen[port], ports = true, append(ports, port)
		}
	}
	return ports, nil
}

func hostPort(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }

// redact returns the address with the password hidden, if it is a URL.
func redact(addr string) string {
	u, err := url.Parse(addr)
	if err != nil || u.Host == "" {
		return addr
	}
	return u.Redacted()
}
