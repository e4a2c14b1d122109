package eventloop_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/nettest"

	"linkstream/edge/eventloop"
	"linkstream/schema/testkit"
)

// countingConn counts how often a timer is set.
type countingConn struct {
	net.Conn
	reads, writes int
}

func (c *countingConn) SetReadDeadline(t time.Time) error {
	c.reads++
	return c.Conn.SetReadDeadline(t)
}

func (c *countingConn) SetWriteDeadline(t time.Time) error {
	c.writes++
	return c.Conn.SetWriteDeadline(t)
}

func TestLazyDeadlines(t *testing.T) {
	t.Parallel()
	t.Run("are those of any connection", func(t *testing.T) {
		nettest.TestConn(t, func() (one, other net.Conn, stop func(), err error) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return nil, nil, nil, err
			}
			defer ln.Close()
			if one, err = net.Dial("tcp", ln.Addr().String()); err != nil {
				return nil, nil, nil, err
			}
			if other, err = ln.Accept(); err != nil {
				return nil, nil, nil, errors.Join(err, one.Close())
			}
			return eventloop.NewLazyConn(one), eventloop.NewLazyConn(other), func() { one.Close(); other.Close() }, nil
		})
	})
	t.Run("what was written before a timer fired is not written again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			one, other := net.Pipe()
			defer one.Close()
			defer other.Close()
			c := eventloop.NewLazyConn(one)
			testkit.Must(t, c.SetWriteDeadline(time.Now().Add(time.Second)))
			testkit.Must(t, c.SetWriteDeadline(time.Now().Add(time.Minute)))
			read := make(chan string)
			go func() {
				all := make([]byte, 10)
				_, _ = io.ReadFull(other, all[:4])
				time.Sleep(2 * time.Second)
				_, _ = io.ReadFull(other, all[4:])
				read <- string(all)
			}()
			n, err := io.WriteString(c, "0123456789")
			testkit.Must(t, err)
			testkit.Equal(t, "bytes written", n, 10)
			testkit.Equal(t, "bytes read", <-read, "0123456789")
		})
	})
	// Each f has one end of a pipe, in a bubble.
	for name, f := range map[string]func(t *testing.T, c net.Conn, below *countingConn){
		"later ones set no timer until the first one fires": func(t *testing.T, c net.Conn, below *countingConn) {
			began := time.Now()
			for i := range 50 {
				testkit.Must(t, c.SetDeadline(began.Add(time.Duration(i+1)*time.Second)))
			}
			testkit.Equal(t, "timers", [2]int{below.reads, below.writes}, [2]int{1, 1})
			_, err := c.Read(make([]byte, 1))
			testkit.Equal(t, "a timeout to read", errors.Is(err, os.ErrDeadlineExceeded), true)
			testkit.Equal(t, "time until then", time.Since(began), 50*time.Second)
			testkit.Must(t, c.SetWriteDeadline(began.Add(60*time.Second)))
			_, err = c.Write(make([]byte, 1))
			testkit.Equal(t, "a timeout to write", errors.Is(err, os.ErrDeadlineExceeded), true)
			testkit.Equal(t, "time until then", time.Since(began), 60*time.Second)
			testkit.Equal(t, "timers", [2]int{below.reads, below.writes}, [2]int{2, 2})
		},
		"earlier ones hold at once": func(t *testing.T, c net.Conn, _ *countingConn) {
			began := time.Now()
			for _, seconds := range []time.Duration{75, 5, 60, 3} {
				testkit.Must(t, c.SetReadDeadline(began.Add(seconds*time.Second)))
			}
			_, err := c.Read(make([]byte, 1))
			testkit.Equal(t, "a timeout", errors.Is(err, os.ErrDeadlineExceeded), true)
			testkit.Equal(t, "time until then", time.Since(began), 3*time.Second)
		},
		"none holds after it was taken back": func(t *testing.T, c net.Conn, _ *countingConn) {
			began := time.Now()
			testkit.Must(t, c.SetReadDeadline(began.Add(time.Second)))
			testkit.Must(t, c.SetReadDeadline(time.Time{}))
			time.AfterFunc(time.Hour, func() { c.Close() })
			_, err := c.Read(make([]byte, 1))
			testkit.Equal(t, "a timeout", errors.Is(err, os.ErrDeadlineExceeded), false)
			testkit.Equal(t, "time until then", time.Since(began), time.Hour)
		},
		"a past one ends a read that waits": func(t *testing.T, c net.Conn, _ *countingConn) {
			began := time.Now()
			testkit.Must(t, c.SetReadDeadline(began.Add(time.Hour)))
			time.AfterFunc(time.Second, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) })
			_, err := c.Read(make([]byte, 1))
			testkit.Equal(t, "a timeout", errors.Is(err, os.ErrDeadlineExceeded), true)
			testkit.Equal(t, "time until then", time.Since(began), time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				one, other := net.Pipe()
				defer one.Close()
				defer other.Close()
				below := &countingConn{Conn: one}
				f(t, eventloop.NewLazyConn(below), below)
			})
		})
	}
}
