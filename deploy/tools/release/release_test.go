//go:build deploy

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"linkstream/schema/testkit"
)

func TestRefusals(t *testing.T) {
	for name, args := range map[string][]string{"no version": nil, "a tag": {"v1.0.0"}, "half a version": {"1.0"},
		"a path": {"1.0.0/../x"}} {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), append([]string{"-release.out", filepath.Join(t.TempDir(), "out")}, args...), io.Discard,
				io.Discard)
			if err == nil || !strings.Contains(err.Error(), "it takes one version") {
				t.Errorf("error %v", err)
			}
		})
	}
	t.Run("an unknown platform", func(t *testing.T) {
		err := run(t.Context(), []string{"-release.platforms", "linux/amd64,plan9/386", "1.0.0"}, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), `"plan9/386" is none of`) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("changes that are not committed", func(t *testing.T) {
		dir := t.TempDir()
		testkit.Must(t, exec.CommandContext(t.Context(), "git", "init", "-q", dir).Run())
		testkit.Must(t, os.WriteFile(filepath.Join(dir, "new.go"), nil, 0o600))
		t.Chdir(dir)
		if _, err := commitTime(t.Context()); err == nil || !strings.Contains(err.Error(), "not committed:\n?? new.go") {
			t.Errorf("error %v", err)
		}
	})
}
