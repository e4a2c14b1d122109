package eventloop

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/schema/service"
)

// Browsers send the cookies of a site also to a short domain below it, so headers may have up to Config.MaxLargeBytes.
// Only the connection that sends such a header has the memory for it, and only until the answer, which ends the
// connection. All other connections have buffers of Config.MaxHeaderBytes.
const (
	maxLarge           = 512 // requests with large headers at the same time; further ones are answered 431
	maxLargePerAddress = 64  // of them
)

// placeholder is what fasthttp reads in place of a request with a large header.
const placeholder = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

var errTarget = errors.New("the target or host of the request cannot be parsed")

// readHeader returns how many bytes p has of a header after it has read the rest of it. p has n bytes already, those of
// rest if that is not empty. If p has no room for the header, readHeader keeps what p has for serveLarge, and replaces
// it by placeholder.
func (c *boundedConn) readHeader(p []byte, n int, rest []byte) (int, error) {
	end := headerEnd(p[:n], 0)
	if end == 0 {
		_ = c.SetReadDeadline(time.Now().Add(c.server.cfg.ReadTimeout)) // if it fails, so does Read
	}
	for end == 0 {
		if n == len(p) {
			c.large = slices.Clone(p)
			return copy(p, placeholder), nil
		}
		m, err := c.Conn.Read(p[n:])
		if n += m; err != nil {
			return n, err
		}
		end, rest = headerEnd(p[:n], n-m), nil
	}
	switch {
	case len(rest) > 0:
		c.rest = rest[end:]
	case end < n:
		c.rest = slices.Clone(p[end:n])
	}
	return end, nil
}

// headerEnd returns where a header ends in b, 0 if it does not end in the bytes from a position on.
func headerEnd(b []byte, from int) (end int) {
	from = max(0, from-len("\n\r"))
	for _, empty := range []string{"\n\r\n", "\n\n"} {
		if i := bytes.Index(b[from:], []byte(empty)); i >= 0 && (end == 0 || from+i+len(empty) < end) {
			end = from + i + len(empty)
		}
	}
	return end
}

// serveLarge answers a request with a large header, of which c has the start, and ends the connection.
func (s *Server) serveLarge(ctx *fasthttp.RequestCtx, c *boundedConn) {
	defer ctx.SetConnectionClose()
	client := s.client(c.clientAddr())
	if s.larges.Take(client, 1) != nil {
		s.handler.Reject(ctx, &fasthttp.ErrSmallBuffer{}) // as if it had more than MaxLargeBytes
		return
	}
	defer s.larges.Leave(client, 1)
	in := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(c.large), c.Conn), s.cfg.MaxLargeBytes)
	err := ctx.Request.ReadLimitBody(in, maxBodyBytes)
	if err == nil {
		_, err = service.CheckFraming(&ctx.Request.Header)
	}
	if err == nil && len(ctx.URI().PathOriginal()) == 0 {
		err = errTarget
	}
	if err != nil {
		s.handler.Reject(ctx, err)
		return
	}
	s.handler.Serve(ctx)
}
