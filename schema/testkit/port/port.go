// Package port hands out loopback ports to programs that a test or trial starts, stops and starts again.
package port

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
)

const (
	lowest      = 10_000
	usualLowest = 32_768 // Linux's default for the lowest port of outgoing connections
	tries       = 1000
)

// claims holds the claims of this process. They end with it.
var claims struct {
	sync.Mutex
	conns []net.PacketConn
}

// Claim returns a TCP port of 127.0.0.1 that nothing listens on, and that no other call returns while this process
// lives, not even in another process: tests of several packages run at once, and a program that is down does not hold
// its port. The port is below the ports of outgoing connections. Otherwise a client that keeps dialing a stopped
// program could get the port for its own end and connect to itself, and the program could not listen on it again.
//
// A claim is a UDP socket that is bound to the same number of another address and never read. The program may serve
// HTTP/3 on its own.
func Claim() (int, error) {
	end := lowestOutgoing()
	if end <= lowest+tries {
		end = usualLowest // no ports are left below the ports of outgoing connections
	}
	for range tries {
		port := lowest + rand.IntN(end-lowest)
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		claim, err := net.ListenPacket("udp", net.JoinHostPort(claimHost(), strconv.Itoa(port)))
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			_ = claim.Close() // it has sent nothing
			continue
		}
		claims.Lock()
		claims.conns = append(claims.conns, claim)
		claims.Unlock()
		return port, l.Close()
	}
	return 0, fmt.Errorf("claim a port: %d of %d to %d are taken", tries, lowest, end-1)
}

// claimHost returns a loopback address that no program listens on. Only Linux has more than one.
func claimHost() string {
	if runtime.GOOS == "linux" {
		return "127.255.0.1"
	}
	return "127.0.0.1"
}

// lowestOutgoing returns the lowest port that the kernel gives to outgoing connections.
func lowestOutgoing() int {
	var low int
	line, _ := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range") // only Linux has this file
	if _, err := fmt.Sscan(string(line), &low); err != nil {
		return usualLowest
	}
	return low
}
