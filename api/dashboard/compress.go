package dashboard

import (
	"bytes"

	"github.com/klauspost/compress/gzip"
	"github.com/valyala/fasthttp"

	"linkstream/api/request"
)

// Answers are compressed by a library of its own: fasthttp's handler for it keeps goroutines that never end.

// minCompressed is the size in bytes from which on gzip makes an answer smaller by more than its header.
const minCompressed = 512

// compressing returns a handler that compresses the text that handle answers with, if the client takes gzip. Forms in
// pages hold a secret, see mask.
func compressing(handle fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(http *fasthttp.RequestCtx) {
		handle(http)
		header := &http.Response.Header
		if http.Response.IsBodyStream() || len(header.ContentEncoding()) > 0 ||
			!bytes.HasPrefix(header.ContentType(), []byte("text/")) {
			return
		}
		header.Set(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
		if body := http.Response.Body(); len(body) >= minCompressed && request.AcceptsGzip(http) {
			w := request.Compressors.Get().(*gzip.Writer)
			defer request.Compressors.Put(w)
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
