package testkit

import (
	"net"
	"strconv"
	"testing"

	"linkstream/schema/testkit/port"
)

// FreeAddress returns a loopback address, host:port, for a program that the test starts, and stops if it likes: see
// port.Claim.
func FreeAddress(tb testing.TB) string {
	tb.Helper()
	claimed, err := port.Claim()
	Must(tb, err)
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(claimed))
}
