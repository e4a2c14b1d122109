package eventloop_test

import (
	"net"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// heap returns the bytes of everything that lives, of stacks as well.
func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // pools let go of what they have in the second one
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

func TestIdleConnectionCostsLessThanAKilobyte(t *testing.T) {
	s := start(t, 2, func(s *site) {
		s.cfg.MaxConnectionsPerAddress, s.cfg.MaxConnections, s.cfg.IdleTimeout = 0, 200_000, time.Hour
	})
	warm := s.dial(t)
	for _, path := range []string{"/link", "/store", "/page", "/large"} {
		ask(t, warm, get(path))
	}
	conns := idleConns(t)
	fds := make([]int, 0, conns)
	defer func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}()
	addr := s.sockaddr(t)
	answer := make([]byte, 1000)
	goroutines, before := runtime.NumGoroutine(), heap()
	for i := range conns { // raw clients, which cost this process no memory
		fd := connectFrom(t, addr, byte(1+i/10_000))
		fds = append(fds, fd)
		if _, err := unix.Write(fd, []byte(get("/link"))); err != nil {
			t.Fatal(err)
		}
		if n, err := unix.Read(fd, answer); n == 0 || err != nil {
			t.Fatalf("read %d bytes, %v", n, err)
		}
	}
	each := (heap() - before) / conns
	t.Logf("%d bytes per idle connection of %d", each, conns)
	if each >= 1<<10 {
		t.Errorf("%d bytes per idle connection", each)
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines more", n-goroutines)
	}
	if open := s.metric(t, metricOpen); open != conns+1 {
		t.Errorf("%d connections are open, want %d", open, conns+1)
	}
}

// idleConns returns how many connections a test may open: 20,000, or what the limit of open files leaves for both
// ends.
func idleConns(t testing.TB) int {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	return int(min(20_000, (limit.Cur-200)/2))
}

func (s *site) sockaddr(t testing.TB) *unix.SockaddrInet4 {
	addr, err := net.ResolveTCPAddr("tcp4", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	return &unix.SockaddrInet4{Port: addr.Port, Addr: [4]byte(addr.IP.To4())}
}

// connectRaw connects without package net.
func connectRaw(t testing.TB, addr *unix.SockaddrInet4) (fd int) { return connectFrom(t, addr, 1) }

// connectFrom is connectRaw from 127.1.0.host: one address has too few ports for many connections. Those of
// 127.0.0.1 are left to tests of other packages, which could not listen any more.
func connectFrom(t testing.TB, addr *unix.SockaddrInet4, host byte) (fd int) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 1, 0, host}})
	}
	if err == nil {
		err = unix.Connect(fd, addr)
	}
	if err != nil {
		t.Fatal(err)
	}
	return fd
}
