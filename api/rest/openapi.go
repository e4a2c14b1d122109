package rest

import (
	_ "embed"

	"github.com/valyala/fasthttp"
)

//go:embed openapi.json
var openAPI []byte

// describe answers GET /api/v1/openapi.json.
func (a *API) describe(c *call) error {
	c.http.SetStatusCode(fasthttp.StatusOK)
	c.http.SetContentType("application/json")
	c.http.Response.SetBodyRaw(openAPI)
	return nil
}
