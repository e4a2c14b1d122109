package certificate

import (
	"bytes"
	"net/http"
	"net/url"

	"github.com/valyala/fasthttp"
)

// maxChallengeLookups bounds the look-ups of challenges in the store, per second. An authority asks a handful of
// times for each certificate.
const maxChallengeLookups = 100

// AnswerChallenge answers a request that validates a host for an authority (RFC 8555, section 8.3), whichever edge
// has asked for its certificate. It reports whether the request was one; other requests for such paths are not
// answered.
func (s *Source) AnswerChallenge(ctx *fasthttp.RequestCtx) bool {
	a := s.acme
	if a == nil {
		return false
	}
	host, _, _ := bytes.Cut(ctx.Host(), []byte(":"))
	name := serverName(string(host))
	if known, _ := a.hosts.Known(name); !known || !a.lookups.allow(maxChallengeLookups) {
		return false
	}
	request := &http.Request{Method: string(ctx.Method()), Host: name, URL: &url.URL{Path: string(ctx.Path())},
		RemoteAddr: ctx.RemoteAddr().String(), Header: http.Header{}}
	return a.issuer.HandleHTTPChallenge(&challengeWriter{ctx: ctx}, request.WithContext(a.ctx))
}

// challengeWriter lets package net/http's kind of handler answer a request.
type challengeWriter struct {
	ctx    *fasthttp.RequestCtx
	header http.Header
}

func (w *challengeWriter) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}

func (w *challengeWriter) WriteHeader(status int) { w.ctx.SetStatusCode(status) }

func (w *challengeWriter) Write(p []byte) (int, error) {
	w.ctx.SetContentType(w.header.Get("Content-Type"))
	return w.ctx.Write(p)
}
