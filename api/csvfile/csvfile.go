// Package csvfile has what all readers and writers of CSV files for people share: the encoding of a file, the cells
// that spreadsheets must not take for formulas, and the aliases in short URLs.
package csvfile

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/url"
	"regexp"
	"strings"

	"golang.org/x/text/encoding/unicode"
)

// BOM is the byte order mark, which begins each file in UTF-8 for people: without it, Excel on Windows reads the text
// in another encoding.
const BOM = "\ufeff"

const bufferSize = 32 << 10

// Text returns the text of a file in UTF-8 without byte order marks, with "\n" or "\r\n" at the end of each line. A
// file that begins with the byte order mark of UTF-16, or as ASCII does in UTF-16, is decoded: spreadsheets export such
// files as "Unicode text".
func Text(file io.Reader) (io.Reader, error) {
	in := bufio.NewReaderSize(file, bufferSize)
	head, err := in.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(head) == 2 && (head[0] == 0 || head[1] == 0 || string(head) == "\xff\xfe" || string(head) == "\xfe\xff") {
		order := unicode.BigEndian
		if head[0] != 0 {
			order = unicode.LittleEndian
		}
		in = bufio.NewReaderSize(unicode.UTF16(order, unicode.UseBOM).NewDecoder().Reader(in), bufferSize)
	}
	for {
		if head, err := in.Peek(len(BOM)); string(head) != BOM {
			if err != nil && !errors.Is(err, io.EOF) {
				return nil, err
			}
			return lineReader{in}, nil
		}
		_, _ = in.Discard(len(BOM))
	}
}

// lineReader turns each "\r" without "\n", at which old spreadsheets end lines, into "\n".
type lineReader struct{ in *bufio.Reader }

func (r lineReader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	for i := 0; i < n; i++ {
		next := bytes.IndexByte(p[i:n], '\r')
		if next < 0 {
			break
		}
		i += next
		follows := p[i+1 : n]
		if len(follows) == 0 {
			follows, _ = r.in.Peek(1) // the next Read returns the error
		}
		if len(follows) == 0 || follows[0] != '\n' {
			p[i] = '\n'
		}
	}
	return n, err
}

var schemes = regexp.MustCompile(`^([A-Za-z]+:)?//`)

// SplitShortURL returns the host and the alias in a short URL, of which people leave out the scheme, or all but the
// alias. A name without a dot or a port is no host if no scheme precedes it.
func SplitShortURL(address string) (host, alias string) {
	scheme := schemes.FindString(address)
	rest := address[len(scheme):]
	if end := strings.IndexAny(rest, "?#"); end >= 0 {
		rest = rest[:end]
	}
	if host, path, _ := strings.Cut(rest, "/"); scheme != "" || strings.ContainsAny(host, ".:") {
		return host, Alias(path)
	}
	return "", Alias(rest)
}

// Alias returns the alias that the path of a short URL names. A path with an escaped slash, which separates no
// segments, names none, and is returned unchanged.
func Alias(path string) string {
	path = strings.Trim(path, "/")
	if plain, err := url.PathUnescape(path); err == nil && strings.Count(plain, "/") == strings.Count(path, "/") {
		return plain
	}
	return path
}
