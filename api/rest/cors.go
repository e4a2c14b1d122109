package rest

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"linkstream/api/request"
	"linkstream/schema"
)

// Origins are the origins (RFC 6454) whose pages may call the API from a browser, as in the header Origin. Their
// scripts send the token themselves: credentials of the browser are never allowed. The zero Origins has none.
//
// The protocol is https://fetch.spec.whatwg.org/#http-cors-protocol.
type Origins []string

// Set implements flag.Value: it reads origins that are separated by commas.
func (o *Origins) Set(list string) error {
	var all Origins
	for s := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' || r == ' ' }) {
		origin, err := parseOrigin(s)
		if err != nil {
			return err
		}
		all = append(all, origin)
	}
	*o = all
	return nil
}

func (o *Origins) String() string { return strings.Join(*o, ",") }

// parseOrigin returns an origin as browsers write it: without a default port, the host in ASCII.
func parseOrigin(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || s == "*" || strings.ContainsAny(u.Host, "*@") || u.User != nil ||
		!strings.EqualFold(s, u.Scheme+"://"+u.Host) {
		return "", fmt.Errorf("%q is not an origin, such as https://app.example.org", s)
	}
	if u.Scheme != "http" && u.Scheme != "https" { // of an app or a browser's extension
		return strings.ToLower(s), nil
	}
	base, err := schema.ParseBaseURL(s)
	if err != nil {
		return "", err
	}
	port := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
	return strings.TrimSuffix(base.String(), port), nil
}

const (
	corsOrigin  = "Access-Control-Allow-Origin"
	corsMethods = "Access-Control-Allow-Methods"
	corsHeaders = "Access-Control-Allow-Headers"
	corsExposed = "Access-Control-Expose-Headers"
	corsMaxAge  = "Access-Control-Max-Age"
	corsAsked   = "Access-Control-Request-Method"

	// requestHeaders are the fields of requests that scripts may set.
	requestHeaders = "Authorization, Content-Type, " + headerKey + ", If-Match, If-None-Match, Last-Event-ID, " +
		"Mcp-Method, Mcp-Name, Mcp-Protocol-Version, " + request.IDHeader
	// exposedHeaders are the fields of answers that scripts may read.
	exposedHeaders = "Allow, ETag, " + headerReplayed + ", Retry-After, WWW-Authenticate, X-RateLimit-Limit, " +
		"X-RateLimit-Remaining, " + request.IDHeader
	// preflightAge is the time in seconds for which browsers keep the answer to a preflight: the longest in Chromium.
	preflightAge = "7200"
)

// allow lets pages of the request's origin read the answer, if it is one of the origins.
func (o Origins) allow(http *fasthttp.RequestCtx) {
	if len(o) == 0 {
		return
	}
	header := &http.Response.Header
	header.Add(fasthttp.HeaderVary, fasthttp.HeaderOrigin)
	if origin := o.of(http); origin != "" {
		header.Set(corsOrigin, origin)
		header.Set(corsExposed, exposedHeaders)
	}
}

// of returns the origin of the page that makes the request, "" unless it is one of the origins.
func (o Origins) of(http *fasthttp.RequestCtx) string {
	if origin := string(http.Request.Header.Peek(fasthttp.HeaderOrigin)); slices.Contains(o, origin) {
		return origin
	}
	return ""
}

// asks reports whether a request is a preflight for a page of one of the origins.
func (o Origins) asks(http *fasthttp.RequestCtx) bool {
	return http.IsOptions() && len(http.Request.Header.Peek(corsAsked)) > 0 && o.of(http) != ""
}

// answerOptions answers OPTIONS of a path. The router has set Allow.
func (a *API) answerOptions(http *fasthttp.RequestCtx) {
	http.SetStatusCode(fasthttp.StatusNoContent)
	if !a.origins.asks(http) {
		return
	}
	header := &http.Response.Header
	header.Del(corsExposed)
	header.Add(fasthttp.HeaderVary, corsAsked)
	header.SetBytesV(corsMethods, header.Peek(fasthttp.HeaderAllow))
	header.Set(corsHeaders, requestHeaders)
	header.Set(corsMaxAge, preflightAge)
}
