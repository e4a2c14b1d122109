package request

import (
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/valyala/fasthttp"
)

// Compressors are *gzip.Writer for text. One takes hundreds of kilobytes.
var Compressors = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.DefaultCompression) // fails for unknown levels only
	return w
}}

// AcceptsGzip reports whether the client takes gzip (RFC 9110, section 12.5.3). "*" stands for gzip unless it is named.
func AcceptsGzip(http *fasthttp.RequestCtx) bool {
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
