package enrich

// Reload reads the file of countries if it has changed, as Run does every few seconds.
func Reload(countries *Countries) error { return countries.files.Load() }
