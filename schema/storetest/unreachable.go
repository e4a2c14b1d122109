package storetest

import (
	"net"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// Promptly is how soon a store reports that its server does not answer.
const Promptly = 8 * time.Second

// TestUnreachable checks that open, which opens a store on the server at an address, fails promptly as unavailable,
// with each of the texts in its error, where the server does not answer or does not exist.
func TestUnreachable(t *testing.T, open func(t *testing.T, addr string) error, texts ...string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	defer listener.Close()
	check := func(t *testing.T, addr string) {
		testkit.Takes(t, Promptly, func(int) { testkit.WantError(t, open(t, addr), schema.CodeUnavailable, texts...) })
	}
	// The kernel accepts connections, and nobody reads from them.
	t.Run("a server that does not answer is unavailable", func(t *testing.T) { check(t, listener.Addr().String()) })
	t.Run("a server that does not exist is unavailable", func(t *testing.T) { check(t, testkit.FreeAddress(t)) })
}
