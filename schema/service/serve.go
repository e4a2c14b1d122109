package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/schema"
)

// CheckAddr returns an error unless addr is an address to listen on: host:port with a port from 0 to 65535. The host
// may be empty, which means all interfaces. With port 0 the system chooses a free port.
func CheckAddr(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("address %s: port is not 0 to 65535", addr)
	}
	return nil
}

// LocalURL returns the URL by which this machine reaches a server that listens on addr.
func LocalURL(addr net.Addr) (schema.BaseURL, error) {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return schema.BaseURL{}, err
	}
	if ip := net.ParseIP(host); ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return schema.ParseBaseURL("http://" + net.JoinHostPort(host, port))
}

// Listen listens on a TCP address for which CheckAddr returns nil.
func Listen(addr string) (net.Listener, error) {
	var config net.ListenConfig
	// Go's default makes each accepted connection dearer, also of clients that do not speak it
	config.SetMultipathTCP(false)
	ln, err := config.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", addr, err)
	}
	return ln, nil
}

// ListenUnlessOpen returns ln or, if that is nil, listens on addr.
func ListenUnlessOpen(ln net.Listener, addr string) (net.Listener, error) {
	if ln != nil {
		return ln, nil
	}
	return Listen(addr)
}

// Serve serves connections of ln until ctx is done. Then it closes ln and waits up to grace for the requests under way.
// It returns nil after such a stop, even if requests were cut off when grace was over. While the system is out of file
// descriptors or memory, new clients wait.
func Serve(ctx context.Context, srv *fasthttp.Server, ln net.Listener, grace time.Duration) error {
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(&patientListener{Listener: ln, warn: srv.Logger}) }()
	select {
	case err := <-failed:
		if err == nil { // fasthttp returns nil if somebody else closes the listener
			err = net.ErrClosed
		}
		return fmt.Errorf("serve on %s: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	bounded, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	err := srv.ShutdownWithContext(bounded)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("shut down server on %s: %w", ln.Addr(), err)
	}
	ln.Close() // the shutdown does not close it if srv.Serve has not begun yet
	<-failed
	return nil
}

// ConnLogger returns a logger for a fasthttp.Server. It logs at level debug, because the server's messages are about
// single connections.
func ConnLogger(log *slog.Logger) fasthttp.Logger { return connLogger{log} }

type connLogger struct{ log *slog.Logger }

func (l connLogger) Printf(format string, args ...any) {
	l.log.Debug(RedactPath(fmt.Sprintf(format, args...)))
}
