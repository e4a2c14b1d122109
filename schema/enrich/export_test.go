package enrich

// Reload loads the countries if their file has changed, as Run does every few seconds.
func Reload(countries *Countries) error { return countries.files.Load() }

// ParseReferrer returns the host of a Referer header.
func ParseReferrer(header string) string { return referrerHost(string(authority([]byte(header)))) }

// Overfull returns the names of an Enricher's memos that have more results than they may.
func Overfull(e *Enricher) (names []string) {
	for name, full := range map[string]bool{
		"agents": len(e.agents.results) > maxMemoHeaders, "referrers": len(e.referrers.results) > maxMemoHeaders,
		"languages": len(e.languages.results) > maxMemoHeaders, "routes": len(e.routes.results) > maxMemoHeaders,
		"campaigns": len(e.campaigns.results) > maxMemoHeaders, "networks": len(e.networks.results) > maxMemoNetworks,
	} {
		if full {
			names = append(names, name)
		}
	}
	return names
}
