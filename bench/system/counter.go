package system

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// awaitPoll is the pause between reads of a counter. Each read costs the measured process CPU time.
	awaitPoll = 50 * time.Millisecond
	// AwaitTimeout bounds the time until clicks are counted after the last request.
	AwaitTimeout = 2 * time.Minute
)

// Counter is a metric of a process that counts clicks.
type Counter struct {
	Name         string // of the contender whose clicks it counts
	Base, Metric string // base URL and metric
	Want         int64  // clicks so far
}

// Await waits until the metric has counted this many more clicks.
func (c *Counter) Await(ctx context.Context, clicks int64) error {
	c.Want += clicks
	ctx, cancel := context.WithTimeout(ctx, AwaitTimeout)
	defer cancel()
	tick := time.NewTicker(awaitPoll)
	defer tick.Stop()
	for {
		got, err := ReadMetric(ctx, c.Base, c.Metric)
		if err != nil {
			return err
		}
		if int64(got) >= c.Want {
			return nil // the checks at the end of a run find clicks that were counted twice
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s to be %d: it is %.0f: %w", c.Metric, c.Want, got, ctx.Err())
		}
	}
}

// Read returns the clicks that the metric has counted.
func (c *Counter) Read(ctx context.Context) (int64, error) {
	got, err := ReadMetric(ctx, c.Base, c.Metric)
	return int64(got), err
}

// ReadMetric returns the sum of a metric over all of its labels.
func ReadMetric(ctx context.Context, base, name string) (sum float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("read metrics: %w", err)
	}
	defer res.Body.Close()
	found := false
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), " ")
		if key, _, _ = strings.Cut(key, "{"); key != name {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("read metric %q: %w", name, err)
		}
		found, sum = true, sum+n
	}
	if !found {
		return 0, fmt.Errorf("%s has no metric %q", base, name)
	}
	return sum, nil
}
