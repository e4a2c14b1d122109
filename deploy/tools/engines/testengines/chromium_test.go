package testengines_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"linkstream/deploy/tools/engines/testengines"
)

// program writes a program that prints a browser's version, and returns its path.
func program(t *testing.T, dir, name, version string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho '"+version+"'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestChromiumFromTheEnvironment(t *testing.T) {
	path := program(t, t.TempDir(), "mine", "Google Chrome for Testing 140.0.1 unknown")
	t.Setenv(testengines.ChromiumEnv, path)
	c, err := testengines.FindChromium(t.Context(), discard)
	if err != nil {
		t.Fatal(err)
	}
	if c.Path != path || c.Version != "140.0.1" || c.Source != testengines.ChromiumEnv {
		t.Errorf("found %v", c)
	}
}

func TestChromiumFromTheEnvironmentMustWork(t *testing.T) {
	for version, want := range map[string]string{
		"Chromium 90.0.4430.212": "older than",
		"Mozilla Firefox 145.0":  "no Chromium",
	} {
		t.Run(version, func(t *testing.T) {
			t.Setenv(testengines.ChromiumEnv, program(t, t.TempDir(), "browser", version))
			if c, err := testengines.FindChromium(t.Context(), discard); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("found %v, error %v, want one with %q", c, err, want)
			}
		})
	}
}

func TestFirstWorkingChromiumOnThePath(t *testing.T) {
	t.Setenv(testengines.ChromiumEnv, "")
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	program(t, dir, "chromium", "Command requires the chromium snap to be installed")
	path := program(t, dir, "chromium-browser", "Chromium 156.0.1.2 built on Debian")
	c, err := testengines.FindChromium(t.Context(), discard)
	if err != nil {
		t.Fatal(err)
	}
	if c.Path != path || c.Source != dir {
		t.Errorf("found %v", c)
	}
}
