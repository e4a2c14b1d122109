package eventloop

import (
	"encoding/binary"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	watchEvery = 25 // milliseconds
	stuckAfter = 50 * time.Millisecond
)

// watcher lets one more loop accept when a connection waits and no accepting loop makes progress. A loop may be stuck in a page fault
// of a spool on a slow disk, in a handler that blocks, or for lack of a CPU. The watcher sleeps until a connection waits, and looks
// again every watchEvery at most, so it costs an idle server nothing and a busy one next to nothing.
type watcher struct {
	server   *Server
	listener int
	poller   *poller
	stop     int           // an eventfd
	ended    chan struct{} // closed when run has returned
	turns    []uint64      // of each loop when it was looked at last
}

func newWatcher(s *Server, listener int) (w *watcher, err error) {
	w = &watcher{server: s, listener: listener, ended: make(chan struct{}), turns: make([]uint64, len(s.loops))}
	if w.poller, err = openPoller(); err != nil {
		return nil, err
	}
	if w.stop, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		return nil, errors.Join(os.NewSyscallError("eventfd", err), w.poller.close())
	}
	err = errors.Join(w.poller.control(unix.EPOLL_CTL_ADD, int32(w.stop), unix.EPOLLIN, aboutWakeup, 0),
		w.poller.control(unix.EPOLL_CTL_ADD, int32(listener), 0, aboutListener, 0))
	if err != nil {
		return nil, errors.Join(os.NewSyscallError("epoll_ctl", err), w.closeFDs())
	}
	return w, nil
}

func (w *watcher) closeFDs() error { return errors.Join(w.poller.close(), unix.Close(w.stop)) }

// run watches until close.
func (w *watcher) run() {
	defer close(w.ended)
	for w.awaitConnection() && w.lookAfter() {
	}
}

// close ends run.
func (w *watcher) close() error {
	_, _ = unix.Write(w.stop, binary.NativeEndian.AppendUint64(nil, 1))
	<-w.ended
	return w.closeFDs()
}

// awaitConnection waits for a connection, and returns false if close is called.
func (w *watcher) awaitConnection() bool {
	err := w.poller.control(unix.EPOLL_CTL_MOD, int32(w.listener), unix.EPOLLIN|unix.EPOLLONESHOT, aboutListener, 0)
	return err == nil && w.wait(-1)
}

// wait waits for up to timeout milliseconds, and returns false if close is called.
func (w *watcher) wait(timeout int) bool {
	n, err := w.poller.wait(timeout)
	for _, event := range w.poller.events[:max(n, 0)] {
		if event.Fd == aboutWakeup {
			return false
		}
	}
	return err == nil
}

// lookAfter returns once no connection waits for accept, and false if close is called.
func (w *watcher) lookAfter() bool {
	s := w.server
	w.moved()
	for since := time.Now(); ; {
		if !w.wait(watchEvery) {
			return false
		}
		if !w.connectionWaits() {
			return true
		}
		accepting := int(s.accepting.Load())
		switch {
		case w.moved():
			since = time.Now()
		case time.Since(since) > stuckAfter && accepting < len(s.loops):
			s.stuck.Inc()
			s.complain("event loops are stuck: another one accepts connections", "stuck", accepting)
			s.enlistOne(accepting)
			since = time.Now()
		}
	}
}

// moved reports whether an accepting loop has begun a turn since the last call.
func (w *watcher) moved() (moved bool) {
	for i, l := range w.server.loops[:w.server.accepting.Load()] {
		turns := l.turns.Load()
		moved = moved || turns != w.turns[i]
		w.turns[i] = turns
	}
	return moved
}

func (w *watcher) connectionWaits() bool {
	fds := []unix.PollFd{{Fd: int32(w.listener), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return n > 0 && err == nil
}
