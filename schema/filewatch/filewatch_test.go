package filewatch_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/schema/filewatch"
)

func TestFollow(t *testing.T) {
	dir := t.TempDir()
	paths := []string{filepath.Join(dir, "one"), filepath.Join(dir, "two")}
	var mu sync.Mutex // guards the variables below
	var content string
	var loads int
	var broken error
	load := func() error {
		mu.Lock()
		defer mu.Unlock()
		if broken != nil {
			return broken
		}
		loads++
		content = ""
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content += string(data)
		}
		return nil
	}
	// put replaces a file atomically, as operators do. The new file may have the same modification time.
	put := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	fail := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		broken = err
	}
	put(paths[0], "a")
	put(paths[1], "b")
	synctest.Test(t, func(t *testing.T) {
		files := filewatch.NewFiles(paths, load)
		if err := files.Load(); err != nil || content != "ab" {
			t.Fatalf("got %q, %v", content, err)
		}
		var failures []string
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			files.Follow(ctx, func(err error) { failures = append(failures, err.Error()) })
		}()
		check := func(when, want string, wantLoads int) {
			t.Helper()
			time.Sleep(11 * time.Second) // synctest's clock: long enough for two polls
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if content != want {
				t.Errorf("%s: got %q, want %q", when, content, want)
			}
			if loads != wantLoads {
				t.Errorf("%s: the files were loaded %d times, want %d", when, loads, wantLoads)
			}
		}
		check("nothing changed", "ab", 1)
		put(paths[1], "c")
		check("one file was replaced by one of the same length", "ac", 2)
		fail(errors.New("broken"))
		put(paths[0], "d")
		check("the files cannot be loaded", "ac", 2)
		fail(errors.New("still broken"))
		check("the files cannot be loaded for another reason", "ac", 2)
		fail(nil)
		check("the files can be loaded again, and have not changed since", "dc", 3)
		cancel()
		<-done
		if want := []string{"broken", "still broken"}; !slices.Equal(failures, want) {
			t.Errorf("reported %q, want %q", failures, want)
		}
	})
	t.Run("no files are never loaded", func(t *testing.T) {
		if err := filewatch.NewFiles(nil, func() error { return errors.New("loaded") }).Load(); err != nil {
			t.Error(err)
		}
	})
}
