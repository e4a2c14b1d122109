package service_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"linkstream/schema/service"
)

const versionRole = "version"

// failWithArgs is a program without a flag -version of its own.
func failWithArgs(_ context.Context, args []string, _, _ io.Writer) error {
	return fmt.Errorf("runs with %q", args)
}

func TestVersion(t *testing.T) {
	line := regexp.MustCompile(`^test \S+ go1\.\S+ [a-z0-9]+/[a-z0-9]+\n$`)
	for _, c := range []struct {
		args    []string
		version bool
	}{
		{[]string{"-version"}, true},
		{[]string{"--version"}, true},
		{[]string{"-log.level=shout", "account", "-version"}, true},
		{[]string{"--", "-version"}, false},
		{nil, false},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], c.args...)
			cmd.Env = append(os.Environ(), roleEnv+"="+versionRole, "LINKSTREAM_VERSION=1.0")
			out, err := cmd.Output()
			if c.version && (err != nil || !line.Match(out)) || !c.version && (err == nil || len(out) > 0) {
				t.Errorf("printed %q, error %v", out, err)
			}
		})
	}
	t.Run("-h names the flag, and a variable of its name is ignored", func(t *testing.T) {
		t.Setenv("LINKSTREAM_VERSION", "1.0")
		var usage strings.Builder
		if _, err := service.ParseArgs("test", "Usage: test", nil, &usage); err != nil {
			t.Error(err)
		}
		_, _ = service.ParseArgs("test", "Usage: test", []string{"-h"}, &usage)
		if !strings.Contains(usage.String(), "-version\n    \tprint the version and exit") {
			t.Errorf("printed %q", usage.String())
		}
	})
}
