package storetest

import (
	"net"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// Promptly is how soon a store reports that its server does not answer: it gives up after 5 s, and the machine may be busy. The kernel
// gives up after minutes.
const Promptly = 30 * time.Second

// TestUnreachable checks that open, which opens a store on the server at an address, fails promptly as unavailable, with
// each of the texts in its error, where the server does not answer or does not exist.
func TestUnreachable(t *testing.T, open func(t *testing.T, addr string) error, texts ...string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	defer listener.Close()
	check := func(t *testing.T, addr string) {
		begin := time.Now()
		err := open(t, addr)
		testkit.WantError(t, err, schema.CodeUnavailable, texts...)
		if took := time.Since(begin); took > Promptly {
			t.Errorf("the error came after %v", took)
		}
	}
	// The kernel accepts connections, and nobody reads from them.
	t.Run("a server that does not answer is unavailable", func(t *testing.T) { check(t, listener.Addr().String()) })
	t.Run("a server that does not exist is unavailable", func(t *testing.T) { check(t, testkit.FreeAddress(t)) })
}
