// Package enrich tells from what a client has sent where a click came from: device and browser from User-Agent, the
// site from Referer, the country from the network.
package enrich

import "linkstream/schema"

// Source is where a click came from.
type Source struct {
	Agent
	Referrer string // as schema.ClickBatch has it
	Country  string // as schema.ClickBatch has it
}

// How many answers an Enricher remembers. The most frequent thousands of headers make up nearly all of real traffic;
// networks are many, and few clicks come from each.
const (
	rememberedHeaders  = 1 << 14
	rememberedNetworks = 1 << 16
)

// Enricher tells the sources of clicks, and remembers them. It belongs to one goroutine.
type Enricher struct {
	agents    *memory[Agent]
	referrers *memory[string] // by authority
	networks  *memory[string] // their countries
	countries *Countries
	atlas     *atlas // of countries as they were when networks was begun; nil if none is known
}

// New returns an enricher. Without countries it knows none.
func New(countries *Countries) *Enricher {
	if countries == nil {
		countries = new(Countries)
	}
	e := &Enricher{
		agents:    newMemory(rememberedHeaders, ParseAgent),
		referrers: newMemory(rememberedHeaders, hostOf),
		countries: countries,
	}
	e.networks = newMemory(rememberedNetworks, func(network string) string { return e.atlas.country(network) })
	return e
}

// Enrich returns where a click came from. It keeps nothing of the click's memory, and does not allocate for headers and
// networks that it remembers.
func (e *Enricher) Enrich(c *schema.Click) (s Source) {
	s.Agent = e.agents.get(c.UserAgent[:min(len(c.UserAgent), schema.MaxUserAgentLen)])
	if site := authority(c.Referrer[:min(len(c.Referrer), schema.MaxReferrerLen)]); len(site) > 0 {
		s.Referrer = e.referrers.get(site)
	}
	if e.follow(); e.atlas != nil && len(c.Network) > 0 {
		s.Country = e.networks.get(c.Network[:min(len(c.Network), schema.MaxNetworkLen)])
	}
	return s
}

// follow forgets the countries of a file that has been replaced.
func (e *Enricher) follow() {
	current := e.countries.database.Load()
	if current == nil || e.atlas != nil && e.atlas.database == current {
		return
	}
	e.atlas = newAtlas(current)
	e.networks.forget()
}
