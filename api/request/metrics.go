package request

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema/service"
)

// OtherRoute is the label of requests whose path matches no route. One label for all of them bounds the number of
// metrics, whatever paths clients send.
const OtherRoute = "other"

// Recorder records requests by route and status. Its methods may be called concurrently.
type Recorder struct {
	set   *metrics.Set
	times *service.Histograms

	mu     sync.RWMutex
	series map[labels]series
}

type labels struct {
	route  string // the pattern, not the path
	status int
}

// series holds the metrics of one combination of labels, so that their names are formatted only once.
type series struct {
	requests *metrics.Counter
	seconds  *service.Histogram
}

// NewRecorder returns a Recorder whose metrics are in set, which has no other one.
func NewRecorder(set *metrics.Set) *Recorder {
	service.Describe(set, "linkstream_api_requests_total", "Requests to the API and the dashboard, by route and status.")
	return &Recorder{set: set, series: map[labels]series{}, times: service.NewHistograms(set,
		"linkstream_api_request_seconds", "Seconds from a request's arrival until its answer is ready, by route.")}
}

// Observe records one answered request: the pattern of its route, the status of the answer and when the request began.
func (r *Recorder) Observe(route string, status int, began time.Time) {
	key := labels{route, status}
	r.mu.RLock()
	s, ok := r.series[key]
	r.mu.RUnlock()
	if !ok {
		s = r.add(key)
	}
	s.requests.Inc()
	s.seconds.Observe(time.Since(began))
}

func (r *Recorder) add(key labels) series {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := series{
		r.set.GetOrCreateCounter(
			fmt.Sprintf("linkstream_api_requests_total{route=%q,status=%q}", key.route, strconv.Itoa(key.status))),
		r.times.With(fmt.Sprintf("route=%q", key.route)),
	}
	r.series[key] = s
	return s
}
