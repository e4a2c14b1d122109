package dashboard

import (
	"bytes"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/valyala/fasthttp"
)

// Answers are compressed by a library of its own: fasthttp's handler for it keeps goroutines that never end.

// minCompressed is the size in bytes from which on gzip makes an answer smaller by more than its header.
const minCompressed = 512

// compressors are *gzip.Writer for pages. One takes hundreds of kilobytes.
var compressors = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.DefaultCompression) // fails for unknown levels only
	return w
}}

// compressing returns a handler that compresses the text that handle answers with, if the client takes gzip. Forms in pages hold a
// secret, see mask.
func compressing(handle fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(http *fasthttp.RequestCtx) {
		handle(http)
		header := &http.Response.Header
		if http.Response.IsBodyStream() || len(header.ContentEncoding()) > 0 || !bytes.HasPrefix(header.ContentType(), []byte("text/")) {
			return
		}
		header.Set(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
		if body := http.Response.Body(); len(body) >= minCompressed && acceptsGzip(http) {
			w := compressors.Get().(*gzip.Writer)
			defer compressors.Put(w)
			http.Response.SetBodyRaw(gzipped(w, body))
			header.SetContentEncoding("gzip")
		}
	}
}

func gzipped(w *gzip.Writer, content []byte) []byte {
	var out bytes.Buffer
	w.Reset(&out)
	_, _ = w.Write(content) // neither fails: a buffer takes everything
	_ = w.Close()
	return out.Bytes()
}

// acceptsGzip reports whether the client takes gzip (RFC 9110, section 12.5.3). "*" stands for gzip unless it is named.
func acceptsGzip(http *fasthttp.RequestCtx) bool {
	takes := false
	for _, value := range http.Request.Header.PeekAll(fasthttp.HeaderAcceptEncoding) {
		for item := range strings.SplitSeq(string(value), ",") {
			name, parameters, _ := strings.Cut(item, ";")
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "gzip", "x-gzip":
				return !zeroQuality(parameters)
			case "*":
				takes = !zeroQuality(parameters)
			}
		}
	}
	return takes
}

// zeroQuality reports whether the parameters of a coding say that it is not acceptable: q=0, q=0.0 and so on.
func zeroQuality(parameters string) bool {
	name, value, _ := strings.Cut(parameters, "=")
	quality, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	return strings.EqualFold(strings.TrimSpace(name), "q") && err == nil && quality == 0
}
