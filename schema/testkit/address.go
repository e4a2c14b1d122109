package testkit

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// addresses holds what FreeAddress has returned, since a program may listen on its address much later.
var addresses sync.Map

// FreeAddress returns a loopback address, host:port, that nothing listens on. Its port is below Linux's ports of outgoing
// connections, because one of those could take the port while the program is down.
func FreeAddress(tb testing.TB) string {
	tb.Helper()
	for range 100 {
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(22000)))
		if err != nil {
			continue
		}
		ln.Close()
		if _, taken := addresses.LoadOrStore(ln.Addr().String(), true); !taken {
			return ln.Addr().String()
		}
	}
	tb.Fatal("found no free port")
	return ""
}
