package load

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

const (
	maxHeaderBytes = 16 << 10 // of an answer; a longer header is an error
	maxBodyBytes   = 1 << 20
)

// Answer is the part of an HTTP answer that sources check. The bytes are valid until Check returns.
type Answer struct {
	Status   int
	Location []byte
	Body     []byte

	last bool // the server closes the connection after this answer
}

// parseAnswer parses the answer in in. complete is false if bytes are missing. It supports just enough of HTTP/1.1 to
// cost little beside the measured server: answers must have a Content-Length.
func parseAnswer(in []byte) (answer Answer, complete bool, err error) {
	end := bytes.Index(in, []byte("\r\n\r\n"))
	if end < 0 {
		if len(in) > maxHeaderBytes {
			return Answer{}, false, errors.New("read answer: the header is too long")
		}
		return Answer{}, false, nil
	}
	answer, length, err := parseHeader(in[:end+2])
	if err != nil {
		return Answer{}, false, fmt.Errorf("read answer: %w", err)
	}
	answer.Body = in[end+4:]
	if len(answer.Body) > length {
		return Answer{}, false, errors.New("read answer: more bytes than the Content-Length")
	}
	return answer, len(answer.Body) == length, nil
}

// parseHeader parses a header, each line of which ends with CRLF, and returns the length of the body.
func parseHeader(header []byte) (answer Answer, length int, err error) {
	line, rest, _ := bytes.Cut(header, []byte("\r\n"))
	const version = "HTTP/1.1 "
	if len(line) < len(version)+3 || string(line[:len(version)]) != version {
		return answer, 0, fmt.Errorf("%q is not a status line of HTTP/1.1", line)
	}
	if answer.Status, err = strconv.Atoi(string(line[len(version) : len(version)+3])); err != nil {
		return answer, 0, fmt.Errorf("%q is not a status line of HTTP/1.1", line)
	}
	length = -1
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		// Comparing the lengths first leaves one or two names to compare.
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case len(name) == len("Location") && bytes.EqualFold(name, []byte("Location")):
			answer.Location = bytes.TrimSpace(value)
		case len(name) == len("Content-Length") && bytes.EqualFold(name, []byte("Content-Length")):
			length, err = strconv.Atoi(string(bytes.TrimSpace(value)))
		case len(name) == len("Connection") && bytes.EqualFold(name, []byte("Connection")):
			answer.last = bytes.EqualFold(bytes.TrimSpace(value), []byte("close"))
		}
	}
	if err != nil || length < 0 || length > maxBodyBytes {
		return answer, 0, fmt.Errorf("the Content-Length is missing or not 0 to %d", maxBodyBytes)
	}
	return answer, length, nil
}
