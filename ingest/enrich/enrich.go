// Package enrich tells from what a client has sent where a click came from: device and browser from User-Agent, the
// site from Referer, the country from the network.
package enrich

import (
	"github.com/oschwald/maxminddb-golang/v2"

	"linkstream/schema"
)

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
	countries *Countries
	database  *maxminddb.Reader // of countries, that networks is from
	networks  *memory[string]   // their countries
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
	e.networks = newMemory(rememberedNetworks, func(network string) string { return countryOf(e.database, network) })
	return e
}

// Enrich returns where a click came from. It keeps nothing of the click's memory, and does not allocate for headers and
// networks that it remembers.
func (e *Enricher) Enrich(c *schema.Click) (s Source) {
	s.Agent = e.agents.get(c.UserAgent[:min(len(c.UserAgent), schema.MaxUserAgentLen)])
	if site := authority(c.Referrer[:min(len(c.Referrer), schema.MaxReferrerLen)]); len(site) > 0 {
		s.Referrer = e.referrers.get(site)
	}
	if current := e.countries.database.Load(); current != e.database {
		e.database = current
		e.networks.forget()
	}
	if e.database != nil && len(c.Network) > 0 {
		s.Country = e.networks.get(c.Network[:min(len(c.Network), schema.MaxNetworkLen)])
	}
	return s
}
