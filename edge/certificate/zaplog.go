package certificate

import (
	"context"
	"log/slog"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// zapLogger returns a logger for certmagic that writes to log. Its information is for debugging here, and its errors are warnings:
// the old certificate is served, and certmagic tries again.
func zapLogger(log *slog.Logger) *zap.Logger { return zap.New(&slogCore{log: log}) }

type slogCore struct{ log *slog.Logger }

func (c *slogCore) Enabled(level zapcore.Level) bool {
	return c.log.Enabled(context.Background(), slogLevel(level))
}

func (c *slogCore) With(fields []zapcore.Field) zapcore.Core {
	return &slogCore{c.log.With(attributes(fields)...)}
}

func (c *slogCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

func (c *slogCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	c.log.Log(context.Background(), slogLevel(entry.Level), "certificates: "+entry.Message, attributes(fields)...)
	return nil
}

func (c *slogCore) Sync() error { return nil }

func slogLevel(level zapcore.Level) slog.Level {
	if level >= zapcore.WarnLevel {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// attributes returns the fields that are plain values: others could hold anything, keys as well.
func attributes(fields []zapcore.Field) []any {
	values := zapcore.NewMapObjectEncoder()
	for _, field := range fields {
		switch field.Type {
		case zapcore.ReflectType, zapcore.ObjectMarshalerType, zapcore.InlineMarshalerType, zapcore.BinaryType:
			continue
		}
		field.AddTo(values)
	}
	var all []any
	for _, field := range fields {
		if value, ok := values.Fields[field.Key]; ok {
			all = append(all, field.Key, value)
		}
	}
	return all
}
