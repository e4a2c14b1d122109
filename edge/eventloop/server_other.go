//go:build !linux

package eventloop

import (
	"context"
	"net"
	"time"
)

type loop struct{}

type waiterState struct{}

// serveLoops serves nothing: there are no loops on this system.
func (s *Server) serveLoops(context.Context, net.Listener, time.Duration) (served bool, err error) {
	return false, nil
}

func (s *Server) longestIdle() (*loop, time.Duration) { return nil, never }

func (*loop) askToShed(time.Duration) bool { return false }
