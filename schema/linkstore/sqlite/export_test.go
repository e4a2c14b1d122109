package sqlite

import "io/fs"

// Migrations returns the files of all migrations.
func Migrations() fs.FS { return migrations() }

// Translate returns a text of linkstore as SQLite takes it.
func Translate(of string) string { return translate(of).sql }
