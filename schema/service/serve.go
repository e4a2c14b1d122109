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

// CheckAddr returns what is wrong with an address to listen on, host:port with a port from 0 (any) to 65535.
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

// LocalURL returns the base of what listens on addr, as this machine reaches it.
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

// Listen opens a TCP listener. An address without a host, as in ":8080", means every interface.
func Listen(addr string) (net.Listener, error) {
	var config net.ListenConfig
	config.SetMultipathTCP(false) // Go's default makes each accepted connection dearer, also of clients that do not speak it
	ln, err := config.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", addr, err)
	}
	return ln, nil
}

// ListenUnlessOpen returns ln, or a new listener at addr if ln is nil.
func ListenUnlessOpen(ln net.Listener, addr string) (net.Listener, error) {
	if ln != nil {
		return ln, nil
	}
	return Listen(addr)
}

// Serve serves srv on ln until ctx is done, then closes ln and gives the requests under way up to grace to finish.
// It returns nil after such a stop, also when grace ran out. While the system is out of file descriptors or memory, new
// clients wait.
func Serve(ctx context.Context, srv *fasthttp.Server, ln net.Listener, grace time.Duration) error {
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(&patientListener{Listener: ln, warn: srv.Logger}) }()
	select {
	case err := <-failed:
		if err == nil { // fasthttp takes a closed listener for a stop
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
	ln.Close() // a server that had not begun to serve when it was told to stop does not know the listener
	<-failed
	return nil
}

// ConnLogger adapts log for fasthttp. Its messages are about single connections, so they are logged at level debug.
func ConnLogger(log *slog.Logger) fasthttp.Logger { return connLogger{log} }

type connLogger struct{ log *slog.Logger }

func (l connLogger) Printf(format string, args ...any) { l.log.Debug(fmt.Sprintf(format, args...)) }
