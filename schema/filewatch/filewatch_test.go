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

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	paths := []string{filepath.Join(dir, "one"), filepath.Join(dir, "two")}
	var mu sync.Mutex // of what follows
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
	// put writes a file beside the other and renames it, within one tick of the file system's clock or not.
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
			time.Sleep(11 * time.Second) // of the bubble: the files are looked at twice
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
		check("what is there cannot be loaded", "ac", 2)
		fail(errors.New("still broken"))
		check("nor for another reason", "ac", 2)
		fail(nil)
		check("it can be loaded, and is as it was", "dc", 3)
		cancel()
		<-done
		if want := []string{"broken", "still broken"}; !slices.Equal(failures, want) {
			t.Errorf("heard of %q, want %q", failures, want)
		}
	})
	t.Run("none are never loaded", func(t *testing.T) {
		if err := filewatch.NewFiles(nil, func() error { return errors.New("loaded") }).Load(); err != nil {
			t.Error(err)
		}
	})
}
