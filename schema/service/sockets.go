package service

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// firstSocket is the descriptor of the first inherited socket, see sd_listen_fds(3).
const firstSocket = 3

// maxSockets bounds LISTEN_FDS.
const maxSockets = 64

// addressFlags has, for each name of a socket, the flag of the address on which a program listens without it.
var addressFlags = map[string]string{"edge": "edge.listen", "edge-tls": "edge.tls-listen", "api": "api.listen"}

// checkAddressFlag returns an error if the user has set the flag of an address that the socket of the service manager
// has anyway.
func checkAddressFlag(flag string) error {
	if os.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return nil
	}
	for name := range strings.SplitSeq(os.Getenv("LISTEN_FDNAMES"), ":") {
		if addressFlags[name] == flag {
			return fmt.Errorf("-%s (or %s) has no effect on the socket of systemd: set ListenStream of that socket unit instead",
				flag, variable(flag))
		}
	}
	return nil
}

// Sockets are the listening sockets that the service manager opened and passed to this process, by name. They stay open
// in the manager while the program restarts, so that clients wait and are not refused.
type Sockets map[string]net.Listener

// InheritSockets takes over the sockets that systemd, or a manager that follows sd_listen_fds(3), has passed. Each must
// have one of the names, by FileDescriptorName in its unit, and no two the same. Without sockets, or if LISTEN_PID is
// not this process, the result is empty. A process may call it once: it removes the variables from the environment.
func InheritSockets(names ...string) (Sockets, error) {
	pid, count, given := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS"), os.Getenv("LISTEN_FDNAMES")
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		if err := os.Unsetenv(name); err != nil {
			return nil, err
		}
	}
	if pid != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 || n > maxSockets {
		return nil, fmt.Errorf("inherit sockets: LISTEN_FDS is %q, want 0 to %d", count, maxSockets)
	}
	sockets, named := Sockets{}, strings.Split(given, ":")
	var errs []error
	for i := range n {
		name := ""
		if i < len(named) {
			name = named[i]
		}
		errs = append(errs, sockets.inherit(firstSocket+i, name, names))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(fmt.Errorf("inherit sockets: %w", err), sockets.Close())
	}
	return sockets, nil
}

func (s Sockets) inherit(fd int, name string, names []string) error {
	syscall.CloseOnExec(fd)
	file := os.NewFile(uintptr(fd), name)
	defer file.Close() // the listener has a descriptor of its own
	if !slices.Contains(names, name) {
		return fmt.Errorf("a socket is called %q: set FileDescriptorName to %s", name, strings.Join(names, " or "))
	}
	if s[name] != nil {
		return fmt.Errorf("two sockets are called %q", name)
	}
	listener, err := net.FileListener(file)
	if err != nil {
		return fmt.Errorf("socket %q: %w", name, err)
	}
	if _, tcp := listener.(*net.TCPListener); !tcp {
		return errors.Join(fmt.Errorf("socket %q: %s is not a TCP address", name, listener.Addr()), listener.Close())
	}
	s[name] = listener
	return nil
}

// Listen returns the socket that was inherited under this name or else listens on addr. inherited reports the first
// case.
func (s Sockets) Listen(name, addr string) (ln net.Listener, inherited bool, err error) {
	if ln = s[name]; ln != nil {
		return ln, true, nil
	}
	ln, err = Listen(addr)
	return ln, false, err
}

// Close closes this process's descriptors of the sockets.
func (s Sockets) Close() error {
	var errs []error
	for _, ln := range s {
		if err := ln.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
