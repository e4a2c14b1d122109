package eventloop

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"

	"linkstream/schema/service"
)

const (
	acceptsPerTurn = 64
	acceptsAtEnd   = 1 << 16              // bound of those that wait when the server stops
	shortestRetry  = 5 * time.Millisecond // after accept ran out of something
	longestRetry   = time.Second
)

// loop is a goroutine and the connections it keeps. Others reach it by its inbox alone.
type loop struct {
	inbox
	scratch
	server   *Server
	listener int
	drained  chan struct{} // closed when no connection is accepted any more and what was received is answered
	poller   *poller
	table    table

	fresh, idle list
	parked      int       // connections
	waiters     []*Waiter // that no request has

	now       time.Duration // when the turn began, since the server's start
	hot, warm bool          // how fast events follow one another: see wait
	spareCPUs bool          // there are more places to run at than loops
	accepts   bool          // the listener is with the poller
	acceptAt  time.Duration // when to accept again if it is not
	retry     time.Duration // before that
	draining  bool

	aborted atomic.Bool  // parked connections are not waited for any longer
	oldest  atomic.Int64 // since when the longest idle of its connections is idle, as of the last turn; or never
}

// scratch is what a loop uses again in each turn.
type scratch struct {
	guest   conn // one that was just accepted
	request Request
	peer    peerConn
	in      []byte
	reader  bytes.Reader
	parser  *bufio.Reader
	writer  *bufio.Writer // into request.out
}

func newLoop(s *Server, number, listener int, local net.Addr) (*loop, error) {
	l := &loop{inbox: inbox{wakeup: -1}, server: s, listener: listener, drained: make(chan struct{})}
	l.oldest.Store(int64(never))
	if err := l.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("open event loop: %w", err), l.closeFDs())
	}
	l.in = make([]byte, s.cfg.MaxHeaderBytes)
	l.parser = bufio.NewReaderSize(nil, s.cfg.MaxHeaderBytes)
	l.writer = bufio.NewWriter((*answers)(&l.request))
	l.peer.local = local
	l.request.Loop, l.request.newWaiter = number, l.newWaiter
	l.request.RequestCtx = new(fasthttp.RequestCtx)
	l.request.Init2(&l.peer, service.ConnLogger(s.log), false)
	return l, nil
}

func (l *loop) open() (err error) {
	if l.poller, err = openPoller(); err != nil {
		return err
	}
	if l.wakeup, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		return os.NewSyscallError("eventfd", err)
	}
	err = l.poller.control(unix.EPOLL_CTL_ADD, int32(l.wakeup), unix.EPOLLIN, aboutWakeup, 0)
	return os.NewSyscallError("epoll_ctl", err)
}

func (l *loop) closeFDs() error {
	var errs []error
	if l.poller != nil {
		errs = append(errs, l.poller.close())
	}
	if l.wakeup >= 0 {
		errs = append(errs, unix.Close(l.wakeup))
	}
	return errors.Join(errs...)
}

// startAccepting registers the listener. The kernel wakes one of the loops that wait in epoll_wait for each connection
// (EPOLLEXCLUSIVE), the first one in the order in which they registered.
func (l *loop) startAccepting() error {
	err := l.poller.control(unix.EPOLL_CTL_ADD, int32(l.listener), unix.EPOLLIN|unix.EPOLLEXCLUSIVE, aboutListener, 0)
	l.accepts = err == nil
	return os.NewSyscallError("epoll_ctl", err)
}

func (l *loop) stopAccepting() {
	if l.accepts {
		_ = l.poller.control(unix.EPOLL_CTL_DEL, int32(l.listener), 0, 0, 0) // of what was added it cannot fail
		l.accepts = false
	}
}

// run serves until the server stops and every connection is closed.
func (l *loop) run() error {
	var err error
	for err == nil && !l.finished() {
		err = l.turn()
	}
	l.end()
	return errors.Join(err, l.closeFDs())
}

func (l *loop) finished() bool {
	return l.draining && (l.parked == 0 || l.aborted.Load())
}

// turn waits for events and deals with them.
func (l *loop) turn() error {
	n, err := l.wait()
	if err != nil {
		return fmt.Errorf("wait for connections: %w", err)
	}
	l.request.Now = time.Now()
	l.now = l.request.Now.Sub(l.server.started)
	for i := range l.poller.events[:n] {
		event := &l.poller.events[i]
		switch {
		case event.Fd == aboutListener:
			err = l.accept(acceptsPerTurn)
		case event.Fd == aboutWakeup:
			l.awake()
		default:
			if c := l.table.at(event.Fd, uint32(event.Pad)); c != nil {
				l.handle(c, event.Events)
			}
		}
		if err != nil {
			return err
		}
	}
	l.readInbox()
	if l.server.stopping.Load() && !l.draining {
		return l.drain()
	}
	return l.keepTime()
}

// drain takes the connections that wait for accept, answers what has come, and closes every connection that is not
// parked.
func (l *loop) drain() error {
	defer close(l.drained)
	l.draining = true
	l.stopAccepting()
	err := l.accept(acceptsAtEnd)
	for _, each := range []*list{&l.fresh, &l.idle} {
		for c := each.first; c != nil; c = each.first {
			each.remove(c)
			l.serve(c, 0) // for the last time: see keep
		}
	}
	return err
}

// handle handles an event of a connection.
func (l *loop) handle(c *conn, events uint32) {
	switch c.state {
	case parked:
		c.reported = true
	case fresh:
		l.fresh.remove(c)
		l.serve(c, events)
	case idle:
		l.idle.remove(c)
		l.serve(c, events)
	}
}

func (l *loop) readInbox() {
	messages := l.take()
	for _, m := range messages {
		switch m.kind {
		case mayGoOn:
			l.resume(m.waiter)
		case shedOne:
			l.shed(m.idle)
		}
	}
	l.giveBack(messages)
}

// end closes what is left.
func (l *loop) end() {
	if !l.draining { // the loop has failed
		l.draining = true
		close(l.drained)
	}
	l.readInbox()
	l.endInbox()
	l.readInbox() // nothing follows
	for _, each := range []*list{&l.fresh, &l.idle} {
		for c := each.first; c != nil; c = each.first {
			each.remove(c)
			l.close(c)
		}
	}
	l.table.each(func(c *conn) {
		if c.state == parked {
			l.close(c)
		}
	})
}
