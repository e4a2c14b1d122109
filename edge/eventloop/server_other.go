//go:build !linux

package eventloop

import (
	"context"
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

type loop struct{}

type waiterState struct{}

// serveLoops serves nothing: there are no loops on this system.
func (s *Server) serveLoops(context.Context, net.Listener, time.Duration) (served bool, err error) {
	return false, nil
}

func noteIdle(net.Conn, fasthttp.ConnState) {}

func (s *Server) shedLooped() bool { return false }
