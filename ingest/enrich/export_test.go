package enrich

// Reload reads the file of countries if it has changed, as Run does every few seconds.
func Reload(countries *Countries) error { return countries.files.Load() }

// ParseReferrer returns the host that a Referer header names.
func ParseReferrer(header string) string { return hostOf(string(authority([]byte(header)))) }
