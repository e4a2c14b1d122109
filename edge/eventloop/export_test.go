package eventloop

import "net"

// NewLazyConn returns a connection whose deadlines are lazy.
func NewLazyConn(c net.Conn) net.Conn { return &lazyConn{Conn: c} }
