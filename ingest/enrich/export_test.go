package enrich

// Reload loads the countries if their file has changed, as Run does every few seconds.
func Reload(countries *Countries) error { return countries.files.Load() }

// ParseReferrer returns the host of a Referer header.
func ParseReferrer(header string) string { return referrerHost(string(authority([]byte(header)))) }
