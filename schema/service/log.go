package service

import (
	"flag"
	"io"
	"log/slog"
)

// LogConfig is the Section of logs.
type LogConfig struct {
	Level slog.Level // the least level that is logged
	JSON  bool       // instead of text

	removed [][2]string // flags that are set without effect, and why
}

// RegisterFlags binds the settings to flags.
func (l *LogConfig) RegisterFlags(fs *flag.FlagSet) {
	fs.TextVar(&l.Level, "log.level", l.Level, "minimum `level` to log: debug, info, warn or error")
	fs.BoolVar(&l.JSON, "log.json", l.JSON, "log in JSON instead of text")
}

// Validate returns nil, because a flag that can be parsed is valid.
func (l *LogConfig) Validate() error { return nil }

// Logger returns a logger that writes to w, without secrets. It warns of flags without effect.
func (l *LogConfig) Logger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: l.Level, ReplaceAttr: redactAttr}
	log := slog.New(slog.NewTextHandler(w, options))
	if l.JSON {
		log = slog.New(slog.NewJSONHandler(w, options))
	}
	for _, flag := range l.removed {
		log.Warn("a flag has no effect: remove it", "flag", "-"+flag[0], "reason", flag[1])
	}
	return log
}
