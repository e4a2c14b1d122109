// Package load is a load generator for one HTTP server. Closed finds the highest rate: each connection sends its next
// request when the previous one is answered. Open measures latency as clients see it: requests are due at a fixed rate,
// whether or not earlier ones are answered.
// Each connection has a goroutine.
package load

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	grace       = 10 * time.Second // for the answers that are missing when a window ends
	dialTimeout = 5 * time.Second
)

// Source makes the requests of one connection. Only one goroutine uses it.
type Source interface {
	// Append appends the next request in wire format to dst.
	Append(dst []byte) []byte
	// Check checks the answer to the last request. An error ends the load.
	Check(Answer) error
}

// Target is a server under load.
type Target struct {
	Addr  string // host:port
	Conns int    // connections at the same time
	// Reconnect opens a new connection for each request. The requests must say "Connection: close", and the server must
	// close the connection after the answer: it keeps the TIME_WAIT states, and the client does not run out of ports.
	Reconnect bool
	// TLS is how connections are secured; nil: not at all.
	TLS *tls.Config
	// Resume makes each connection but the first ones resume the TLS session of an earlier one.
	Resume bool
	// Late is how long after a request was due Open drops it if it is unsent; 0: 10 s.
	Late   time.Duration
	Source func(conn int) Source
}

// Result is the outcome of a load.
type Result struct {
	Answers int64 // accepted by Check
	Elapsed time.Duration
	// Sending is the time of an open loop without the wait for the last answers.
	Sending time.Duration
	Latency *hdrhistogram.Histogram // in nanoseconds
	// Sent is the latency from the actual send, and SendDelay the time from when a request was due until it was sent:
	// because all connections were busy, or because the generator did not get a core. Open loops only.
	Sent, SendDelay *hdrhistogram.Histogram
	Resumed         int64 // TLS sessions
	Unsent          int64 // requests that were due and dropped, because the server was too far behind
	Reconnects      int64 // connections that the server closed although they should last
}

// Closed sends requests for the duration of window. Each connection sends its next request when the previous one is
// answered.
func Closed(ctx context.Context, t Target, window time.Duration) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, window+grace)
	defer cancel()
	return generate(ctx, t, pace{window: window})
}

// Open sends rate requests per second for the duration of window, evenly spaced, whether or not earlier ones are
// answered. The latency of a request counts from the time at which it was due: a request that waits for a free
// connection, because the server is slow with others, is as late as its client would see it. (A load that waits before
// it sends leaves such requests out, which Gil Tene calls coordinated omission.) Open drops requests that are unsent
// too long after they were due (Target.Late), and counts them.
func Open(ctx context.Context, t Target, rate float64, window time.Duration) (Result, error) {
	if !(rate > 0) {
		return Result{}, fmt.Errorf("load %s: rate %v is not positive", t.Addr, rate)
	}
	ctx, cancel := context.WithTimeout(ctx, window+2*grace)
	defer cancel()
	late := t.Late
	if late == 0 {
		late = grace
	}
	return generate(ctx, t, pace{rate: rate, window: window, late: late})
}

// Probe sends one request, and returns an error unless its answer is right.
func Probe(ctx context.Context, t Target) error {
	t.Conns = 1
	_, err := Open(ctx, t, 1000, time.Millisecond)
	return err
}

// pace is when requests are due.
type pace struct {
	rate   float64 // requests per second; 0: a closed loop
	window time.Duration
	late   time.Duration // after which an open loop drops a request that is due
}

// count returns the number of requests of an open loop, at least one.
func (p pace) count() int64 { return max(1, int64(p.rate*p.window.Seconds())) }

// due returns when the request n of an open loop is due, after the start.
func (p pace) due(n int64) time.Duration {
	return time.Duration(float64(n) * float64(time.Second) / p.rate)
}

// NewHistogram returns an empty histogram of nanoseconds, from a microsecond to a minute, with three significant
// digits.
func NewHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(int64(time.Microsecond), int64(time.Minute), 3)
}

// NewResult returns a result without answers.
func NewResult() Result {
	return Result{Latency: NewHistogram(), Sent: NewHistogram(), SendDelay: NewHistogram()}
}

// record adds a duration. Longer ones than the histogram holds count as its maximum.
func record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(0, int64(d)), h.HighestTrackableValue())) // fails only above the maximum
}

// Rate returns the answers per second.
func (r *Result) Rate() float64 { return float64(r.Answers) / cmp.Or(r.Sending, r.Elapsed).Seconds() }

// Merge adds the answers of another load at the same time.
func (r *Result) Merge(other Result) {
	r.Answers += other.Answers
	r.Sending = max(r.Sending, other.Sending)
	r.Unsent += other.Unsent
	r.Resumed += other.Resumed
	r.Reconnects += other.Reconnects
	r.Latency.Merge(other.Latency)
	r.Sent.Merge(other.Sent)
	r.SendDelay.Merge(other.SendDelay)
}
