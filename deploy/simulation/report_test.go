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
	browsers, referrers, countries := make(map[string]int64), make(map[string]int64), make(map[string]int64)
	rows := s.since(since, func(r row) bool { return r.link == linkID })
	for _, r := range rows {
		report.Devices[r.device]++
		if r.device != schema.Bot {
			browsers[r.browser]++
			referrers[r.referrer]++
			countries[r.country]++
		}
	}
	report.Days = days(rows)
	report.Browsers, report.Referrers, report.Countries = named(browsers), named(referrers), named(countries)
	return report, nil
}

func (s *store) AccountReport(_ context.Context, accountID int64, since time.Time) (schema.AccountReport, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := s.since(since, func(r row) bool { return accountID != 0 && r.account == accountID })
	links := make(map[int64]int64)
	for _, r := range rows {
		links[r.link]++
	}
	report := schema.AccountReport{Days: days(rows)}
	for _, id := range top(links, schema.TopNames) {
		report.Links = append(report.Links, schema.LinkCount{LinkID: id, Total: links[id]})
	}
	return report, nil
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
