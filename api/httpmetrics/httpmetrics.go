// Package traffic is what the API and the dashboard have in common as servers: how requests are counted, and what is
// said of one that cannot be read.
package httpmetrics

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"
)

// OtherRoute stands for every path that has no route, so that metrics do not grow with what clients make up.
const OtherRoute = "other"

// Counter counts requests. Its methods may be called concurrently.
type Counter struct {
	set *metrics.Set

	mu    sync.RWMutex
	known map[outcome]figures
}

// outcome is what requests are counted by: the pattern of their route, and the status they were answered with.
type outcome struct {
	route  string
	status int
}

// figures are the metrics of an outcome. Their names, which say what they are of, are put together once.
type figures struct {
	requests *metrics.Counter
	seconds  *metrics.Histogram
}

// NewCounter returns a Counter whose metrics are in set.
func NewCounter(set *metrics.Set) *Counter { return &Counter{set: set, known: map[outcome]figures{}} }

// Count counts a request that began at began, and was answered with status, under the pattern of its route.
func (c *Counter) Count(route string, status int, began time.Time) {
	of := outcome{route, status}
	c.mu.RLock()
	f, known := c.known[of]
	c.mu.RUnlock()
	if !known {
		f = c.add(of)
	}
	f.requests.Inc()
	f.seconds.UpdateDuration(began)
}

func (c *Counter) add(of outcome) figures {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := figures{
		c.set.GetOrCreateCounter(
			fmt.Sprintf("linkstream_api_requests_total{route=%q,status=%q}", of.route, strconv.Itoa(of.status))),
		c.set.GetOrCreateHistogram(fmt.Sprintf("linkstream_api_request_seconds{route=%q}", of.route)),
	}
	c.known[of] = f
	return f
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
