package simulation_test

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"linkstream/schema"
	"linkstream/schema/storetest"
)

// top returns the keys with the highest counts, ties in order of the key.
func top[K cmp.Ordered](counts map[K]int64, limit int) []K {
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b K) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	return keys[:min(len(keys), limit)]
}

func (s *store) ReportDetail(context.Context) (schema.ReportDetail, error) {
	return schema.ReportDetail{}, nil
}

func (s *store) Report(_ context.Context, q schema.ReportQuery) (schema.Report, error) {
	if err := q.Check(); err != nil {
		return schema.Report{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	report := schema.Report{Series: make([]schema.Period, len(q.Bounds)-1), Names: map[schema.Dimension][]schema.NameCount{}}
	names, links := make(map[schema.Dimension]map[string]int64), make(map[int64]int64)
	selected := slices.DeleteFunc(slices.Clone(s.rows), func(r row) bool { return !r.selected(q) })
	if q.CountsVisitors() {
		report.Visitors = storetest.CountVisitors(q, func(yield func(time.Time, uint64) bool) {
			for _, r := range selected {
				yield(r.at, r.visitor)
			}
		})
	}
	for _, r := range selected {
		p := &report.Previous
		for i, begin := range q.Bounds[:len(q.Bounds)-1] {
			if !r.at.Before(begin) {
				p = &report.Series[i]
			}
		}
		if r.device == schema.Bot {
			p.Bots++
		} else {
			p.People++
		}
		if r.at.Before(q.Bounds[0]) {
			continue
		}
		links[r.link]++
		for by, name := range r.names() {
			if names[by] == nil {
				names[by] = make(map[string]int64)
			}
			if r.device != schema.Bot && !q.NoNames {
				names[by][name]++
			}
		}
	}
	for by, counts := range names {
		for _, name := range top(counts, q.Limit) {
			report.Names[by] = append(report.Names[by], schema.NameCount{Name: name, Total: counts[name]})
		}
	}
	for _, id := range top(links, q.Limit) {
		if q.TopLinks {
			report.Links = append(report.Links, schema.LinkCount{LinkID: id, Total: links[id]})
		}
	}
	return report, nil
}

func (r row) names() map[schema.Dimension]string {
	return map[schema.Dimension]string{
		schema.ByDevice: string(r.device), schema.ByBrowser: r.browser, schema.ByOS: r.os, schema.ByLanguage: r.language,
		schema.ByReferrer: r.referrer, schema.ByCountry: r.country, schema.ByRoute: r.route, schema.ByCampaign: r.campaign,
	}
}

func (r row) selected(q schema.ReportQuery) bool {
	for by, name := range q.Filter {
		if r.names()[by] != name {
			return false
		}
	}
	ofLinks := r.account == q.AccountID && (q.Links == nil || slices.Contains(q.Links, r.link))
	return ofLinks && !r.at.Before(q.Previous) && r.at.Before(q.Bounds[len(q.Bounds)-1])
}
