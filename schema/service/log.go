package service

import (
	"flag"
	"io"
	"log/slog"
)

// LogConfig says what a program logs.
type LogConfig struct {
	Level slog.Level
	JSON  bool
}

// RegisterFlags binds the settings to flags.
func (l *LogConfig) RegisterFlags(fs *flag.FlagSet) {
	fs.TextVar(&l.Level, "log.level", l.Level, "least `level` that is logged: debug, info, warn or error")
	fs.BoolVar(&l.JSON, "log.json", l.JSON, "log as JSON, not as text")
}

// Validate returns nil: a flag that parses is valid.
func (l *LogConfig) Validate() error { return nil }

// Logger returns a logger that writes to w.
func (l *LogConfig) Logger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: l.Level}
	if l.JSON {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
