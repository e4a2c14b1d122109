package testkit

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
)

// Buffer keeps the bytes that are written to it, such as a log or the output of a process. Its zero value is empty and
// ready, and its methods may be called concurrently.
type Buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns everything that has been written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Contains reports whether text has been written.
func (b *Buffer) Contains(text string) bool { return strings.Contains(b.String(), text) }

// Count returns how often text has been written.
func (b *Buffer) Count(text string) int { return strings.Count(b.String(), text) }

// Logger returns a logger that writes to b in the text format of package slog, from level Info.
func (b *Buffer) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }
