package request

import (
	"io"
	"net"
)

// NewPacedWriter returns a writer to w whose client, at the other end of a connection, has to read at FileSpeed.
func NewPacedWriter(w io.Writer, conn net.Conn) io.Writer { return newPacedWriter(w, conn) }

// NewPacedReader returns a reader of r whose client, at the other end of a connection, has to send at FileSpeed.
func NewPacedReader(r io.Reader, conn net.Conn) io.Reader {
	return &pacedReader{r, filePace{deadline: conn.SetReadDeadline}}
}

// For tests of files.
const (
	FileSpeed    = fileSpeed
	FilePatience = filePatience
)
