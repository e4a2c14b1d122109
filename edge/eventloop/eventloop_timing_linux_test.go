package eventloop_test

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// BenchmarkServe measures a redirect from memory by CPU time, the client's part included: on a lasting connection, and on a
// new one each.
func BenchmarkServe(b *testing.B) {
	for _, loops := range []int{0, 1, 2} {
		s := start(b, loops, nil)
		addr, answer := s.sockaddr(b), make([]byte, 1000)
		exchange := func(b *testing.B, fd int, request []byte) {
			n, err := unix.Write(fd, request)
			if err == nil {
				n, err = unix.Read(fd, answer)
			}
			if n == 0 || err != nil {
				b.Fatalf("%d bytes, %v", n, err)
			}
		}
		measure := func(name string, run func(b *testing.B)) {
			b.Run(fmt.Sprintf("%d loops/%s", loops, name), func(b *testing.B) {
				b.ReportAllocs()
				began := used(b)
				run(b)
				b.ReportMetric(float64(used(b)-began)/float64(b.N), "cpu-ns/op")
			})
		}
		measure("lasting", func(b *testing.B) {
			fd := connectRaw(b, addr)
			defer unix.Close(fd)
			request := []byte(get("/link"))
			for range b.N {
				exchange(b, fd, request)
			}
		})
		measure("new", func(b *testing.B) {
			request := []byte("GET /link HTTP/1.1\r\nHost: a\r\n" + end)
			for range b.N {
				fd := connectRaw(b, addr)
				exchange(b, fd, request)
				unix.Close(fd)
			}
		})
		s.stop()
	}
}
