// Package filewatch loads files again when an operator replaces them.
package filewatch

import (
	"context"
	"os"
	"slices"
	"time"
)

// filesInterval is how often Follow looks for changes.
const filesInterval = 5 * time.Second

// Files are what an operator may replace while a service runs. They belong to one goroutine at a time.
type Files struct {
	paths  []string
	load   func() error
	loaded []os.FileInfo // of the files as they were
}

// NewFiles returns files that load reads, all of them at once. While they cannot be read, what load has made of them
// before should stay in use.
func NewFiles(paths []string, load func() error) *Files { return &Files{paths: paths, load: load} }

// Load calls load, unless the files are what they were when that last succeeded. Without files it does nothing.
func (f *Files) Load() error {
	// They are looked at first: what changes while they are read is read again.
	present := make([]os.FileInfo, len(f.paths))
	for i, path := range f.paths {
		var err error
		if present[i], err = os.Stat(path); err != nil {
			return err
		}
	}
	if slices.EqualFunc(present, f.loaded, unchanged) {
		return nil
	}
	if err := f.load(); err != nil {
		return err
	}
	f.loaded = present
	return nil
}

// unchanged also tells a file from another one that was renamed to it in the same tick of the file system's clock.
func unchanged(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// Follow calls Load every few seconds until ctx is done. It calls failed with an error, but not with one that came the
// time before, too.
func (f *Files) Follow(ctx context.Context, failed func(error)) {
	ticker := time.NewTicker(filesInterval)
	defer ticker.Stop()
	last := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		failure := ""
		if err := f.Load(); err != nil {
			if failure = err.Error(); failure != last {
				failed(err)
			}
		}
		last = failure
	}
}
