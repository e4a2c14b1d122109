package testengines

import (
	"net"
	"net/url"
	"strconv"

	"linkstream/schema/testkit/port"
)

const loopback = "127.0.0.1"

// claimPorts returns n ports for an engine that may stop and start again: see port.Claim.
func claimPorts(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		var err error
		if ports[i], err = port.Claim(); err != nil {
			return nil, err
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
