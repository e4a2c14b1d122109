// Package filewatch reloads files when an operator replaces them. It polls them, so that it works on every file system.
package filewatch

import (
	"context"
	"os"
	"slices"
	"time"
)

// pollInterval is the time between two calls of Load by Follow.
const pollInterval = 5 * time.Second

// Files is a set of files that an operator may replace while a service runs. It must not be used concurrently.
type Files struct {
	paths  []string
	load   func() error
	loaded []os.FileInfo // of the files when load last succeeded
}

// NewFiles returns the files at paths. load reads all of them. If it returns an error, it should keep the content that
// it has read before.
func NewFiles(paths []string, load func() error) *Files { return &Files{paths: paths, load: load} }

// Load calls load if a file has changed since load last succeeded, or if it never has. Without files it does nothing.
func (f *Files) Load() error {
	// Stat comes first, so that a file that changes during load is loaded again.
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

// unchanged compares identity, time and size, because a file may be replaced by another one with the same time.
func unchanged(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// Follow calls Load every few seconds until ctx is done. It calls failed with each error that differs from the previous
// one.
func (f *Files) Follow(ctx context.Context, failed func(error)) {
	if len(f.paths) == 0 {
		<-ctx.Done()
		return
	}
	ticker := time.NewTicker(pollInterval)
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
