// Package enrich derives a click's source from the client's request: device, browser and operating system from
// User-Agent, the referring site from Referer, the language from Accept-Language, the country from the client's
// network. It also checks the route, the campaign and the path that the edge has recorded.
package enrich

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"linkstream/schema"
)

// Source is where a click came from.
type Source struct {
	Agent
	Referrer string // as in schema.ClickBatch
	Country  string // as in schema.ClickBatch
	Language string // as in schema.ClickBatch
	Route    string // as in schema.ClickBatch
	Campaign string // as in schema.ClickBatch
	Path     string // as in schema.ClickBatch
}

// AppendTo appends the names of the source to the columns of a batch.
func (s *Source) AppendTo(b *schema.ClickBatch) {
	b.Device, b.Browser, b.OS = append(b.Device, s.Device), append(b.Browser, s.Browser), append(b.OS, s.OS)
	b.Referrer, b.Country = append(b.Referrer, s.Referrer), append(b.Country, s.Country)
	b.Language = append(b.Language, s.Language)
	b.Route, b.Campaign = append(b.Route, s.Route), append(b.Campaign, s.Campaign)
	b.Path = append(b.Path, s.Path)
}

// Sizes of an Enricher's memos. A few thousand headers make up nearly all real traffic; networks are many, with few
// clicks from each.
const (
	maxMemoHeaders  = 1 << 14
	maxMemoNetworks = 1 << 16
)

// Enricher derives the sources of clicks and memoizes them. It belongs to one goroutine.
type Enricher struct {
	agents    *memo[Agent]  // by User-Agent
	referrers *memo[string] // host by authority of the Referer
	networks  *memo[string] // country by network
	languages *memo[string] // by language range
	routes    *memo[string] // by name
	campaigns *memo[string] // by name
	paths     *memo[string] // by path
	countries *Countries
	lookup    *countryLookup // in the database that networks was filled from; nil without one
}

// New returns an enricher. countries may be nil: then every country is unknown.
func New(countries *Countries) *Enricher { return newEnricher(countries, 1) }

// NewSmall returns an enricher for programs with many of them: its memos have a sixteenth of the room of New's.
func NewSmall(countries *Countries) *Enricher { return newEnricher(countries, 16) }

func newEnricher(countries *Countries, share int) *Enricher {
	if countries == nil {
		countries = new(Countries)
	}
	e := &Enricher{
		agents:    newMemo(maxMemoHeaders/share, ParseAgent),
		referrers: newMemo(maxMemoHeaders/share, referrerHost),
		languages: newMemo(maxMemoHeaders/share, parseLanguage),
		routes:    newMemo(maxMemoHeaders/share, parseRoute),
		campaigns: newMemo(maxMemoHeaders/share, visible),
		paths:     newMemo(maxMemoHeaders/share, parsePath),
		countries: countries,
	}
	e.networks = newMemo(maxMemoNetworks/share, func(network string) string { return e.lookup.country(network) })
	return e
}

// Enrich returns the source of a click. It keeps no reference to the click's bytes, and does not allocate for memoized
// headers and networks.
func (e *Enricher) Enrich(c *schema.Click) (s Source) {
	s.Agent = e.Agent(c.UserAgent)
	if site := authority(c.Referrer[:min(len(c.Referrer), schema.MaxReferrerLen)]); len(site) > 0 {
		s.Referrer = e.referrers.get(site)
	}
	if len(c.Language) > 0 {
		s.Language = e.languages.get(c.Language[:min(len(c.Language), schema.MaxLanguageLen)])
	}
	if len(c.Route) > 0 {
		s.Route = e.routes.get(c.Route[:min(len(c.Route), schema.MaxRouteLen)])
	}
	if len(c.Campaign) > 0 {
		s.Campaign = e.campaigns.get(c.Campaign[:min(len(c.Campaign), schema.MaxCampaignLen)])
	}
	if len(c.Path) > 0 {
		s.Path = e.paths.get(c.Path[:min(len(c.Path), schema.MaxPathLen)])
	}
	s.Country = e.Country(c.Network)
	return s
}

// Agent returns the agent of a User-Agent header, as Enrich does.
func (e *Enricher) Agent(header []byte) Agent {
	return e.agents.get(header[:min(len(header), schema.MaxUserAgentLen)])
}

// Country returns the country of a network, as Enrich does.
func (e *Enricher) Country(network []byte) string {
	if e.useCurrentCountries(); e.lookup == nil || len(network) == 0 {
		return ""
	}
	return e.networks.get(network[:min(len(network), schema.MaxNetworkLen)])
}

// parseRoute returns schema.OtherName for a name that no rule or variant can have.
func parseRoute(name string) string {
	if !schema.ValidTag(name) {
		return schema.OtherName
	}
	return name
}

// parsePath returns schema.OtherName for a path that is too long for a name, or has nothing visible.
func parsePath(path string) string {
	name := visible(path)
	if name == "" || utf8.RuneCountInString(path) > schema.MaxPathName {
		return schema.OtherName
	}
	return name
}

// visible leaves out bytes that are no visible character, such as the beginning of a truncated one.
func visible(name string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, name)
}

// useCurrentCountries clears the memoized countries when the database has been replaced.
func (e *Enricher) useCurrentCountries() {
	current := e.countries.database.Load()
	if current == nil || e.lookup != nil && e.lookup.database == current {
		return
	}
	e.lookup = newCountryLookup(current)
	e.networks.clear()
}

// memo memoizes up to limit results of compute.
type memo[V any] struct {
	limit   int
	results map[string]V
	compute func(key string) V
}

func newMemo[V any](limit int, compute func(key string) V) *memo[V] {
	return &memo[V]{limit: limit, results: make(map[string]V), compute: compute}
}

// get returns compute(key). It copies the key. A full memo is cleared: filling it again is rare and costs less than
// keeping an eviction order up to date for every click.
func (m *memo[V]) get(key []byte) V {
	if v, ok := m.results[string(key)]; ok {
		return v
	}
	if len(m.results) >= m.limit {
		m.clear()
	}
	k := string(key)
	v := m.compute(k)
	m.results[k] = v
	return v
}

func (m *memo[V]) clear() { clear(m.results) }
