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
	firstPort   = 12000 // of those that are tried
	portsToTry  = 100
	usualLowest = 32768 // where Linux begins to take ports for outgoing connections
)

// freePort returns a port that nothing listens on. It lies below those that the kernel gives to outgoing connections:
// of those, a client that keeps dialling a stopped engine will at some time be given the engine's port for its own
// end, whereupon it is connected to itself and the engine cannot come back.
func freePort() (int, error) {
	end := lowestEphemeralPort()
	if end < firstPort+portsToTry {
		end = usualLowest // this machine leaves no room below: the best that can be done
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

// redact takes the password out of an address, if it is a URL.
func redact(addr string) string {
	u, err := url.Parse(addr)
	if err != nil || u.Host == "" {
		return addr
	}
	return u.Redacted()
}
