package load_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"linkstream/bench/load"
	"linkstream/schema/testkit"
)

// plainSource asks for / and takes status 200.
type plainSource struct{}

func (plainSource) Append(dst []byte) []byte {
	return append(dst, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"...)
}

func (plainSource) Check(a load.Answer) error {
	if a.Status != http.StatusOK || string(a.Body) != "hello" {
		return fmt.Errorf("status %d, body %q", a.Status, a.Body)
	}
	return nil
}

func TestIdle(t *testing.T) {
	var clients sync.Map // addresses of connections
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		clients.Store(r.RemoteAddr, true)
		fmt.Fprint(w, "hello")
	}))
	defer server.Close()
	idle := load.NewIdle(server.Listener.Addr().String(), plainSource{})
	defer idle.Close()
	testkit.Must(t, idle.Grow(t.Context(), 3))
	testkit.Must(t, idle.Grow(t.Context(), 10))
	answered, err := idle.Ask(t.Context())
	testkit.Must(t, err)
	testkit.Equal(t, "connections that answer again", answered, 10)
	connections := 0
	clients.Range(func(any, any) bool { connections++; return true })
	testkit.Equal(t, "connections in all", connections, 10)

	server.CloseClientConnections()
	answered, err = idle.Ask(t.Context())
	testkit.Must(t, err)
	testkit.Equal(t, "connections that answer after the server has closed them", answered, 0)
}
