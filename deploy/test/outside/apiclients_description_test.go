//go:build deploy

package outside_test

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestDescriptionIsLinted(t *testing.T) {
	out := runIn(t, t.TempDir(), []string{"REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true"}, "node",
		filepath.Join(npm(t), ".bin/redocly"), "lint", "--config", absolute(t, filepath.Join(clientTools, "redocly.yaml")),
		"--format", "stylish", absolute(t, description))
	t.Log(out)
}

// TestRequestsFromDescription has schemathesis make requests from the description: its examples, each property's limits, valid
// and invalid values at random, and sequences that follow links. Every answer must be a described one.
func TestRequestsFromDescription(t *testing.T) {
	t.Parallel()
	s := startClientService(t)
	s.click(t)
	out := runIn(t, t.TempDir(), []string{"PYTHONUTF8=1"}, python(t), "-m", "schemathesis.cli",
		"--config-file", absolute(t, filepath.Join(clientTools, "schemathesis.toml")),
		"run", absolute(t, description), "--url", s.api, "--header", "Authorization: Bearer "+clientToken,
		"--phases", "examples,coverage,fuzzing,stateful", "--checks", "all",
		"--exclude-checks", "allow_header_conformance", // the path of bulk is also that of a link with this hash: Allow has the methods of both
		"--exclude-operation-id", "linkLive", "--exclude-operation-id", "accountLive", // whose answers do not end
		"--max-examples", "100", "--seed", "1",
		"--rate-limit", "auto", "--request-timeout", "10", "--continue-on-failure")
	for _, phase := range []string{"Examples", "Coverage", "Fuzzing", "Stateful"} {
		if !strings.Contains(out, "✅ "+phase) {
			t.Errorf("phase %s has not passed:\n%s", phase, out)
		}
	}
}
