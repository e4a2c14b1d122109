package redirect

import (
	"fmt"
	"sync"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema/service"
)

// siteCounters count the redirects of hosts whose domains say where visitors go whom no link leads anywhere. The hosts
// beyond the first maxCountedHosts are counted together.
type siteCounters struct {
	set    *metrics.Set
	mu     sync.Mutex
	byHost map[string]*[2]*metrics.Counter // from unknown links, and from the root
}

const (
	maxCountedHosts = 500
	otherHosts      = "other"
)

func newSiteCounters(set *metrics.Set) siteCounters {
	service.Describe(set, "linkstream_edge_site_redirects_total",
		"Redirects from roots of domains and from unknown links, which are no clicks, by domain (500 at most) and kind.")
	return siteCounters{set: set, byHost: map[string]*[2]*metrics.Counter{}}
}

// counter returns the counter of redirects from a host's root, or from its unknown links.
func (c *siteCounters) counter(host []byte, root bool) *metrics.Counter {
	c.mu.Lock()
	defer c.mu.Unlock()
	counters := c.byHost[string(host)]
	if counters == nil && len(c.byHost) >= maxCountedHosts {
		host = []byte(otherHosts)
		counters = c.byHost[otherHosts]
	}
	if counters == nil {
		counters = new([2]*metrics.Counter)
		for i, kind := range []string{"not_found", "root"} {
			counters[i] = c.set.NewCounter(fmt.Sprintf("linkstream_edge_site_redirects_total{host=%q,from=%q}", host, kind))
		}
		c.byHost[string(host)] = counters
	}
	if root {
		return counters[1]
	}
	return counters[0]
}
