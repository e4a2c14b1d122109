//go:build linux

package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/ClickHouse/ch-go/compress"
	chproto "github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"
)

// notSettings are the parameters of a URL that are no settings of the query.
var notSettings = map[string]bool{
	"query": true, "database": true, "default_format": true, "query_id": true, "quota_key": true,
	"session_id": true, "session_timeout": true, "session_check": true, "compress": true,
	"decompress": true, "client_protocol_version": true, "user": true, "password": true,
	"role": true, "buffer_size": true, "wait_end_of_query": true, "stacktrace": true,
}

// ServeHTTP runs the query in the URL, in the body, or in both, one after the other.
func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	params := r.URL.Query()
	if r.URL.Path == "/ping" || r.Method == http.MethodGet && !params.Has("query") {
		_, _ = io.WriteString(w, "Ok.\n")
		return
	}
	h := w.Header()
	h.Set("X-ClickHouse-Query-Id", params.Get("query_id"))
	h.Set("X-ClickHouse-Timezone", e.zone.String())
	body, err := e.answerHTTP(h, r, params)
	if err != nil {
		x := asException(err)
		h.Del("Content-Encoding")
		h.Set("X-ClickHouse-Exception-Code", strconv.Itoa(x.code))
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, x.text+"\n")
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // fails if the client has gone
}

// answerHTTP runs the query of r and returns the body of the answer, about which it sets headers.
func (e *engine) answerHTTP(h http.Header, r *http.Request, params url.Values) ([]byte, error) {
	q, err := readHTTP(r, params)
	if err != nil {
		return nil, err
	}
	ctx, end := e.named.begin(r.Context(), q.id, "")
	defer end()
	res, err := e.run(ctx, q)
	if err != nil {
		return nil, err
	}
	format, body := q.resultFormat(), res.data
	if wanted := params.Get("client_protocol_version"); wanted != "" && format == "Native" {
		if body, err = e.inRevision(body, wanted); err != nil {
			return nil, err
		}
	}
	h.Set("X-ClickHouse-Format", format)
	h.Set("X-ClickHouse-Summary", fmt.Sprintf(`{"written_rows":"%d"}`, res.written))
	switch {
	case params.Get("compress") == "1":
		method := compress.LZ4
		if strings.EqualFold(params.Get("network_compression_method"), "zstd") {
			method = compress.ZSTD
		}
		return frames(body, method)
	case len(body) > 0 && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip"):
		h.Set("Content-Encoding", "gzip")
		return gzipped(body)
	}
	return body, nil
}

func readHTTP(r *http.Request, params url.Values) (*request, error) {
	body, err := readBody(r, params)
	if err != nil {
		return nil, fmt.Errorf("read body: %w", err)
	}
	q := &request{sql: body, format: cmp.Or(params.Get("default_format"), "TabSeparated"), id: params.Get("query_id"),
		database: cmp.Or(params.Get("database"), r.Header.Get("X-ClickHouse-Database"))}
	if sql := params.Get("query"); parseInsert([]byte(sql)) != nil {
		q.sql, q.rows = []byte(sql), body
	} else if sql != "" {
		q.sql = append([]byte(sql+"\n"), body...)
	}
	for name, values := range params {
		if !notSettings[name] {
			q.set(name, values[0])
		}
	}
	return q, nil
}

func readBody(r *http.Request, params url.Values) ([]byte, error) {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(body)
		if err != nil {
			return nil, err
		}
		body = z
	}
	if params.Get("decompress") == "1" {
		body = compress.NewReader(body)
	}
	b, err := io.ReadAll(body)
	if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) { // compress.Reader returns it wrapped
		err = nil
	}
	return b, err
}

var (
	insertVerb   = regexp.MustCompile(`(?is)^(?:\s|--[^\n]*\n|/\*.*?\*/)*INSERT\s`)
	formatClause = regexp.MustCompile(`(?is)\sFORMAT\s+(\w+)\s*(?:SETTINGS\s[^;]*)?;?\s*$`)
)

// resultFormat returns the format of the result: the one that the statement names, else the default. What an INSERT
// names is the format of its rows.
func (r *request) resultFormat() string {
	if !insertVerb.Match(r.sql[:min(len(r.sql), 4096)]) {
		if m := formatClause.FindSubmatch(r.sql); m != nil {
			return string(m[1])
		}
	}
	return r.format
}

// inRevision returns a result in format Native as that revision of the protocol has it.
func (e *engine) inRevision(native []byte, revision string) ([]byte, error) {
	n, err := strconv.ParseUint(revision, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("read client_protocol_version: %w", err)
	}
	var encoded chproto.Buffer
	err = e.eachBlock(native, func(b *proto.Block) error {
		return b.Encode(&encoded, min(n, proto.DBMS_TCP_PROTOCOL_VERSION))
	})
	return encoded.Buf, err
}

// frames compresses data in ClickHouse's frames, of at most 1 MiB each.
func frames(data []byte, method compress.Method) (out []byte, err error) {
	w := compress.NewWriter(compress.LevelZero, method)
	for len(data) > 0 {
		n := min(len(data), 1<<20)
		if err := w.Compress(data[:n]); err != nil {
			return nil, err
		}
		out, data = append(out, w.Data...), data[n:]
	}
	return out, nil
}

func gzipped(data []byte) ([]byte, error) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write(data)
	err = errors.Join(err, z.Close())
	return out.Bytes(), err
}
