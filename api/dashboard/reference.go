package dashboard

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/valyala/fasthttp"

	"linkstream/api/reference"
	"linkstream/api/request"
)

// PathReference is the path of the reference, which belongs to the API.
const PathReference = "/api/v1/docs"

// pathAgents is the path of a file for language models that write programs (https://llmstxt.org).
const (
	pathAgents = "/llms.txt"
	agentsText = `# linkstream

> A service for short links with click analytics. Programs use its HTTP API with a Bearer token, which people create in
> the dashboard.

- [API reference](` + PathReference + `): operations, fields, limits, errors, examples in curl, Go, Python, TypeScript
- [OpenAPI document](/api/v1/openapi.json): the same for programs
- Tools of the Model Context Protocol: POST /api/v1/mcp (Streamable HTTP), with the token
`
)

// referencePage is the reference of the API as it is sent, the same for everybody.
type referencePage struct {
	html, zipped []byte
	tag          string
}

// newReference returns a function that makes the page when it is first called.
func (d *Dashboard) newReference(document []byte) func() (referencePage, error) {
	return sync.OnceValues(func() (p referencePage, err error) {
		content, err := reference.New(document, d.url.String())
		if err != nil {
			return p, err
		}
		v := view{Data: content, Zone: time.UTC, SignUp: d.signUp}
		if p.html, err = d.html("reference", "layout.html", v); err != nil {
			return p, err
		}
		digest := sha256.Sum256(p.html)
		p.tag = `W/"` + hex.EncodeToString(digest[:8]) + `"` // weak: one for both codings
		zip, err := gzip.NewWriterLevel(nil, gzip.BestCompression)
		p.zipped = gzipped(zip, p.html)
		return p, err
	})
}

// AnswerReference answers GET and HEAD of PathReference. It returns an error if there is no page.
func (d *Dashboard) AnswerReference(http *fasthttp.RequestCtx) error {
	page, err := d.reference()
	if err != nil {
		return err
	}
	header := &http.Response.Header
	d.setHeaders(header)
	header.Set(fasthttp.HeaderCacheControl, "no-cache")
	header.Add(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
	header.Set(fasthttp.HeaderETag, page.tag)
	if strings.Contains(string(http.Request.Header.Peek(fasthttp.HeaderIfNoneMatch)), page.tag) {
		http.SetStatusCode(fasthttp.StatusNotModified)
		return nil
	}
	http.SetStatusCode(fasthttp.StatusOK)
	http.SetContentType(htmlType)
	http.Response.SetBodyRaw(page.html)
	if request.AcceptsGzip(http) {
		header.SetContentEncoding("gzip")
		http.Response.SetBodyRaw(page.zipped)
	}
	return nil
}
