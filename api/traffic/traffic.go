// Package traffic is what the API and the dashboard have in common as servers: how requests are counted, and what is
// said of one that cannot be read.
package traffic

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"
)

// OtherRoute stands for every path that has no route, so that metrics do not grow with what clients make up.
const OtherRoute = "other"

// Count counts a request that began at began, and was answered with status, under the pattern of its route.
func Count(set *metrics.Set, route string, status int, began time.Time) {
	labels := fmt.Sprintf("{route=%q,status=%q}", route, strconv.Itoa(status))
	set.GetOrCreateCounter("linkstream_api_requests_total" + labels).Inc()
	set.GetOrCreateHistogram(fmt.Sprintf("linkstream_api_request_seconds{route=%q}", route)).UpdateDuration(began)
}

// Unreadable returns what the client is told of an error in reading its request.
func Unreadable(err error) (status int, message string) {
	var header *fasthttp.ErrSmallBuffer
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		return fasthttp.StatusRequestEntityTooLarge, "The body is larger than 64 KiB."
	case errors.As(err, &header):
		return fasthttp.StatusRequestHeaderFieldsTooLarge, "The header is too large."
	case errors.As(err, &timeout) && timeout.Timeout():
		return fasthttp.StatusRequestTimeout, "The request took too long to arrive."
	}
	return fasthttp.StatusBadRequest, "The request is not valid HTTP."
}
