package linkstore

import (
	"embed"
	"io/fs"
	"path"

	"linkstream/schema/migration"
)

//go:embed migrations
var migrationFiles embed.FS

// Migrations returns the migrations of an engine: its own, in a folder migrations, and those that all engines have, in
// the engine's spelling.
func Migrations(own fs.FS, spellings Dialect) migration.Folder {
	all := migration.Folder{}
	for _, files := range []struct {
		fs.FS
		spell func(string) string
	}{{own, func(text string) string { return text }}, {migrationFiles, spellings.Expand}} {
		names, err := fs.Glob(files, "migrations/*.sql")
		if err != nil {
			panic(err) // the pattern is a constant
		}
		for _, name := range names {
			text, err := fs.ReadFile(files, name)
			if err != nil {
				panic(err) // the file is part of the program
			}
			if name = path.Base(name); all[name] != "" {
				panic("two migrations are named " + name)
			}
			all[name] = files.spell(string(text))
		}
	}
	return all
}
