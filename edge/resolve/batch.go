package resolve

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema"
	"linkstream/schema/groupcommit"
	"linkstream/schema/service"
)

// Bounds of the queries for links under way.
const (
	linksPerQuery  = 256
	linkQueries    = 4
	suspectQueries = 1        // for clients that have just asked for keys that do not exist
	maxWaiting     = 64 << 10 // look-ups; the server's connections are fewer
)

// linkQuery looks up many links at a time. A look-up that finds a query free begins at once; those that come while all are
// busy share the next one. So the store is asked less often per link the more links are asked for, and nobody waits for a
// timer.
type linkQuery struct {
	links   linkStore
	groups  [2]*groupcommit.Group[linkLookup] // for suspects, the second one: their look-ups never keep others waiting
	queries *metrics.Counter
}

// linkLookup is a key, and then what the store has there.
type linkLookup struct {
	key  schema.LinkKey
	link schema.Link
}

func newLinkQuery(cfg *Config, links linkStore, set *metrics.Set) *linkQuery {
	service.Describe(set, "linkstream_edge_link_queries_total", "Queries in which links were looked up, up to 256 in each.")
	q := &linkQuery{links: links, queries: set.NewCounter("linkstream_edge_link_queries_total")}
	for i, parallel := range []int{linkQueries, suspectQueries} {
		q.groups[i] = groupcommit.New(groupcommit.Limits{Batch: linksPerQuery, Queue: maxWaiting, Timeout: cfg.LookupTimeout,
			Parallel: parallel}, q.run)
	}
	return q
}

// lookup is a lookup of links.
func (q *linkQuery) lookup(ctx context.Context, key string, suspect bool) (linkIDs, []byte, error) {
	asked := schema.LinkKey{DomainID: int64(binary.BigEndian.Uint64([]byte(key[:8]))), Hash: key[8:]}
	link, err := q.read(ctx, asked, suspect)
	if err != nil {
		return linkIDs{}, nil, fmt.Errorf("look up link %q: %w", asked.Hash, err)
	}
	if link.Stopped == schema.HostLost { // whoever has the host now has other links
		return linkIDs{}, nil, errNotFound
	}
	return linkIDs{link.ID, link.AccountID}, encodeAnswer(&link), nil
}

// read returns what the store has at a key.
func (q *linkQuery) read(ctx context.Context, key schema.LinkKey, suspect bool) (schema.Link, error) {
	group := q.groups[0]
	if suspect {
		group = q.groups[1]
	}
	found, err := group.Submit(ctx, linkLookup{key: key})
	return found.link, err
}

// run looks up a batch in one query.
func (q *linkQuery) run(ctx context.Context, batch []*groupcommit.Call[linkLookup]) error {
	q.queries.Inc()
	keys := make([]schema.LinkKey, len(batch))
	for i, call := range batch {
		keys[i] = call.Value.key
	}
	links, err := q.links.LinksByHash(ctx, keys)
	if err != nil {
		return err
	}
	found := make(map[schema.LinkKey]schema.Link, len(links))
	for _, link := range links {
		found[link.Key()] = link
	}
	for _, call := range batch {
		var ok bool
		if call.Value.link, ok = found[call.Value.key]; !ok {
			call.Err = errNotFound
		}
	}
	return nil
}
