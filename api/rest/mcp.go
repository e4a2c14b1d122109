package rest

import (
	"bytes"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/api/assistant"
	"linkstream/api/request"
	"linkstream/schema"
	"linkstream/schema/service"
)

// assistantTools are the tools of the API for assistants.
var assistantTools = sync.OnceValues(func() (*assistant.Tools, error) {
	return assistant.New(openAPI, service.Version())
})

// callTool answers POST /api/v1/mcp, see package assistant. A message counts as one request, as does each request after
// the first one that a tool makes.
func (a *API) callTool(c *call) error {
	tools, err := assistantTools()
	if err != nil {
		return err
	}
	header := http.Header{}
	for _, name := range assistant.Headers {
		if value := c.http.Request.Header.Peek(name); len(value) > 0 {
			header.Set(name, string(value))
		}
	}
	counted := true // the next request
	out := &toolAnswer{header: http.Header{}, status: http.StatusOK}
	tools.Serve(request.Context(c.http), out, header, c.http.PostBody(), &assistant.Caller{
		May: func(method, path string) bool { return schema.HasScope(c.scopes, scopeOf(method, path)) },
		Do: func(req assistant.Request) assistant.Answer {
			defer func() { counted = false }()
			return a.callInside(c, req, counted)
		},
		Failed: func(cause any) {
			a.log.Error("tool failed", "request_id", request.ID(c.http), "error", fmt.Sprintf("%v\n%s", cause, debug.Stack()))
		},
	})
	contentType := out.header.Get("Content-Type")
	if out.status >= http.StatusBadRequest && strings.HasPrefix(contentType, "text/plain") {
		return &httpError{status: out.status, message: strings.TrimSpace(out.body.String())}
	}
	c.http.SetStatusCode(out.status)
	c.http.SetContentType(contentType)
	c.http.SetBody(out.body.Bytes())
	return nil
}

// callInside answers a request that a tool makes in a call, with the token of the call.
func (a *API) callInside(c *call, req assistant.Request, counted bool) assistant.Answer {
	var asked fasthttp.Request
	asked.Header.SetMethod(req.Method)
	asked.SetRequestURI(req.Target)
	if req.Body != nil {
		asked.Header.SetContentType("application/json")
		asked.SetBodyRaw(req.Body)
	}
	http := &fasthttp.RequestCtx{}
	http.Init(&asked, c.http.RemoteAddr(), nil)
	request.Inherit(http, c.http)
	inside := &call{http: http, turn: c.turn, account: c.account, token: c.token, scopes: c.scopes, quota: c.quota,
		arrived: time.Now(), route: request.OtherRoute, inAPI: true, takesBody: true}
	inside.setDeadline(callTimeout)
	http.SetUserValue(callKey{}, inside)
	var err error
	if !counted {
		_, err = a.count(inside, 1)
		c.setQuota(inside.quota)
	}
	a.answer(inside, err)
	header := &http.Response.Header
	return assistant.Answer{Status: http.Response.StatusCode(), Type: string(header.ContentType()),
		RetryAfter: string(header.Peek("Retry-After")), Body: http.Response.Body()}
}

// toolAnswer is the answer to a message.
type toolAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (t *toolAnswer) Header() http.Header                { return t.header }
func (t *toolAnswer) WriteHeader(status int)             { t.status = status }
func (t *toolAnswer) Write(part []byte) (n int, _ error) { return t.body.Write(part) }
