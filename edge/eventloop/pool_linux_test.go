//go:build !race

// Under the race detector a sync.Pool drops elements at random: it allocates again, and ristretto loses the
// requests that it collects in one.

package eventloop_test

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestLoopAllocatesNothing(t *testing.T) {
	s := start(t, 1, nil)
	addr := s.sockaddr(t)
	answer := make([]byte, 1000)
	exchange := func(fd int, request []byte) {
		n, err := unix.Write(fd, request)
		if err == nil {
			n, err = unix.Read(fd, answer)
		}
		if n == 0 || err != nil {
			t.Fatalf("%d bytes, %v", n, err)
		}
	}
	lasting := connectRaw(t, addr)
	defer unix.Close(lasting)
	for i, path := range []string{"/link", "/page", "/soon"} {
		local := &unix.SockaddrInet4{Addr: [4]byte{127, 1, 1, byte(1 + i)}} // see connectFrom, which allocates
		request := []byte(get(path))
		if allocs := testing.AllocsPerRun(500, func() { exchange(lasting, request) }); allocs != 0 {
			t.Errorf("%s on a lasting connection: %v allocations per request", path, allocs)
		}
		closing := []byte("GET " + path + " HTTP/1.1\r\nHost: a\r\n" + end)
		for name, request := range map[string][]byte{"closing": closing, "idle": request} {
			if allocs := testing.AllocsPerRun(500, func() {
				fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
				if err != nil {
					t.Fatal(err)
				}
				if err := unix.Bind(fd, local); err != nil {
					t.Fatal(err)
				}
				if err := unix.Connect(fd, addr); err != nil {
					t.Fatal(err)
				}
				exchange(fd, request)
				unix.Close(fd)
			}); allocs != 0 {
				t.Errorf("%s on a new connection, %s: %v allocations per request", path, name, allocs)
			}
		}
	}
}
