package sqlite

// Translate returns a text of linkstore as SQLite takes it.
func Translate(of string) string { return translate(of).sql }
