package simulation_test

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"linkstream/schema"
)

func (s *store) LinkReport(_ context.Context, linkID int64, since time.Time) (schema.LinkReport, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	report := schema.LinkReport{Devices: make(map[schema.Device]int64)}
	browsers, systems, languages := make(map[string]int64), make(map[string]int64), make(map[string]int64)
	referrers, countries := make(map[string]int64), make(map[string]int64)
	rows := s.since(since, func(r row) bool { return r.link == linkID })
	for _, r := range rows {
		report.Devices[r.device]++
		if r.device != schema.Bot {
			browsers[r.browser]++
			systems[r.os]++
			languages[r.language]++
			referrers[r.referrer]++
			countries[r.country]++
		}
	}
	report.Days = days(rows)
	report.Browsers, report.Systems, report.Languages = named(browsers), named(systems), named(languages)
	report.Referrers, report.Countries = named(referrers), named(countries)
	return report, nil
}

func (s *store) AccountReport(_ context.Context, accountID int64, since, linksSince time.Time) (schema.AccountReport, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ofAccount := func(r row) bool { return accountID != 0 && r.account == accountID }
	links := make(map[int64]int64)
	for _, r := range s.since(linksSince, ofAccount) {
		links[r.link]++
	}
	report := schema.AccountReport{Days: days(s.since(since, ofAccount))}
	for _, id := range top(links, schema.TopNames) {
		report.Links = append(report.Links, schema.LinkCount{LinkID: id, Total: links[id]})
	}
	return report, nil
}

func (s *store) AccountDays(_ context.Context, accountID int64, since time.Time) ([]schema.DayReport, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return days(s.since(since, func(r row) bool { return accountID != 0 && r.account == accountID })), nil
}

// since returns the wanted rows from the UTC day of at on.
func (s *store) since(at time.Time, wanted func(row) bool) (rows []row) {
	day := at.UTC().Format(time.DateOnly)
	for _, r := range s.rows {
		if r.day >= day && wanted(r) {
			rows = append(rows, r)
		}
	}
	return rows
}

func days(rows []row) (all []schema.DayReport) {
	people, bots := make(map[string]int64), make(map[string]int64)
	for _, r := range rows {
		people[r.day] += 0
		if r.device == schema.Bot {
			bots[r.day]++
		} else {
			people[r.day]++
		}
	}
	for _, day := range slices.Sorted(maps.Keys(people)) {
		all = append(all, schema.DayReport{Date: day, People: people[day], Bots: bots[day]})
	}
	return all
}

func named(counts map[string]int64) (all []schema.NameCount) {
	for _, name := range top(counts, schema.TopNames) {
		all = append(all, schema.NameCount{Name: name, Total: counts[name]})
	}
	return all
}

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
	for _, r := range s.rows {
		if !r.selected(q) {
			continue
		}
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
			if r.device != schema.Bot && !q.OnlyLinks {
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
		schema.ByReferrer: r.referrer, schema.ByCountry: r.country,
	}
}

func (r row) selected(q schema.ReportQuery) bool {
	for by, name := range q.Filter {
		if r.names()[by] != name {
			return false
		}
	}
	ofLinks := slices.Contains(q.Links, r.link) || q.Links == nil && r.account == q.AccountID && r.account != 0
	return ofLinks && !r.at.Before(q.Previous) && r.at.Before(q.Bounds[len(q.Bounds)-1])
}
