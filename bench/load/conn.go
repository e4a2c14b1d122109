package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

const (
	dialTimeout    = 5 * time.Second
	maxHeaderBytes = 16 << 10 // of an answer; more is an error
	maxBodyBytes   = 1 << 20
)

// Answer is what a load looks at in an HTTP answer. The bytes are borrowed until the connection's next request.
type Answer struct {
	Status   int
	Location []byte
	Body     []byte
}

// conn is a keep-alive HTTP/1.1 connection with one request at a time. It knows just enough of HTTP to cost the machine
// little beside the server that it measures: answers must have a Content-Length.
type conn struct {
	net.Conn
	out []byte // the request under way, reused
	in  []byte // the last answer, reused
}

func dial(ctx context.Context, addr string) (*conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	c, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("connect to %q: %w", addr, err)
	}
	return &conn{Conn: c, in: make([]byte, 0, 4<<10)}, nil
}

// roundTrip sends c.out and reads the answer to it.
func (c *conn) roundTrip() (Answer, error) {
	if _, err := c.Write(c.out); err != nil {
		return Answer{}, fmt.Errorf("send request: %w", err)
	}
	c.in = c.in[:0]
	headerEnd := 0
	for headerEnd == 0 {
		if len(c.in) > maxHeaderBytes {
			return Answer{}, errors.New("read answer: its header is too large")
		}
		if err := c.more(); err != nil {
			return Answer{}, err
		}
		if i := bytes.Index(c.in, []byte("\r\n\r\n")); i >= 0 {
			headerEnd = i + 4
		}
	}
	answer, length, err := parseHeader(c.in[:headerEnd-2])
	if err != nil {
		return Answer{}, fmt.Errorf("read answer: %w", err)
	}
	for len(c.in) < headerEnd+length {
		if err := c.more(); err != nil {
			return Answer{}, err
		}
	}
	if len(c.in) > headerEnd+length {
		return Answer{}, errors.New("read answer: there is more than was asked for")
	}
	// The buffer may have moved while the body was read, but the location still points to the same bytes.
	answer.Body = c.in[headerEnd:]
	return answer, nil
}

// more reads what is there behind c.in.
func (c *conn) more() error {
	if len(c.in) == cap(c.in) {
		c.in = append(c.in, make([]byte, cap(c.in))...)[:len(c.in)]
	}
	n, err := c.Read(c.in[len(c.in):cap(c.in)])
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	c.in = c.in[:len(c.in)+n]
	return nil
}

// parseHeader reads a header, each line of which ends with CRLF, and returns the length of the body behind it.
func parseHeader(header []byte) (answer Answer, length int, err error) {
	line, rest, _ := bytes.Cut(header, []byte("\r\n"))
	const version = "HTTP/1.1 "
	if len(line) < len(version)+3 || string(line[:len(version)]) != version {
		return answer, 0, fmt.Errorf("%q is no status line of HTTP/1.1", line)
	}
	if answer.Status, err = strconv.Atoi(string(line[len(version) : len(version)+3])); err != nil {
		return answer, 0, fmt.Errorf("%q is no status line of HTTP/1.1", line)
	}
	length = -1
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		// Names are compared only where the length fits: there is a line or two of each.
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case len(name) == len("Location") && bytes.EqualFold(name, []byte("Location")):
			answer.Location = bytes.TrimSpace(value)
		case len(name) == len("Content-Length") && bytes.EqualFold(name, []byte("Content-Length")):
			length, err = strconv.Atoi(string(bytes.TrimSpace(value)))
		}
	}
	if err != nil || length < 0 || length > maxBodyBytes {
		return answer, 0, fmt.Errorf("its Content-Length is missing or not 0 to %d", maxBodyBytes)
	}
	return answer, length, nil
}
