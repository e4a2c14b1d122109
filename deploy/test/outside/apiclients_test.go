//go:build deploy && nightly

package outside_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// A client is a program in testdata that uses what a generator has made from the description. It calls every operation,
// runs into the errors that clients have to tell apart, and prints what it understood as one JSON object.
type client struct {
	name string
	// prepare generates, compiles and returns the program and its arguments. dir has a copy of testdata/name.
	prepare func(t *testing.T, dir string) []string
}

var clients = []client{
	{"go", prepareGo},
	{"openapi-typescript", prepareOpenAPITypeScript},
}

func TestClients(t *testing.T) {
	t.Parallel()
	s := startClientService(t)
	s.click(t, "clicked", "")
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			testkit.Must(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata/apiclients", c.name))))
			command := c.prepare(t, dir)
			recorder := record(t, s)
			alias := "c-" + c.name // of at most 20 characters
			env := []string{"API_URL=" + recorder.url, "API_TOKEN=" + clientToken, "API_ALIAS=" + alias}
			out := runIn(t, dir, env, command[0], command[1:]...)
			var said map[string]any
			testkit.Must(t, json.Unmarshal([]byte(out), &said))
			now := time.Now().UTC()
			testkit.Equal(t, "what the client says", said, map[string]any{
				"hash": alias, "original_url": "https://example.com/ä?a=b&c", "year": float64(now.Year()),
				"invalid": 1.0, "unsafe": "unsafe_url", "unknown": "not_found", "denied": "The API token is missing or invalid.",
				"clicks": 1.0, "day": now.Format(time.DateOnly), "on_day": 1.0, "desktop": 1.0, "firefox": 1.0,
				"first": alias, "active": true, "per_page": 20.0, "exported": true,
				"title": "Edited", "tags": 1.0, "expires": 2099.0, "forever": true, "deleted": true, "gone": "not_found",
				"tagged": 1.0, "domains": 0.0, "bulk": 1.0, "shared": true, "hides": true, "shares": 1.0, "unshared": true,
				"people": 1.0, "system": "Linux", "most": "clicked", "openapi": "3.1.0",
				"trashed": float64(now.Year()), "restored": alias, "changed": alias, "absent": "not_found", "removed": 1.0,
				"external": true, "imported": 3.0, "old_day": "2024-01-02", "forgotten": true,
				"qr": true, "scopes": 4.0, "rotated": true, "asked": true, "delivery": "webhook.test", "resent": true,
				"hook_off": true,
				"hook_url": "https://hooks.example.com/", "hooks": 1.0, "unhooked": true,
			})
			if missing := recorder.missing(); len(missing) > 0 {
				t.Errorf("the client does not call %q", missing)
			}
		})
	}
}

func prepareGo(t *testing.T, dir string) []string {
	testkit.Must(t, os.Mkdir(filepath.Join(dir, "client"), 0o700))
	runIn(t, dir, nil, "go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "client",
		"-o", "client/client.go", absolute(t, description))
	runIn(t, dir, nil, "go", "vet", "./...")
	runIn(t, dir, nil, "go", "build", "-o", "program", ".")
	return []string{filepath.Join(dir, "program")}
}

func prepareOpenAPITypeScript(t *testing.T, dir string) []string {
	modules := npm(t)
	runIn(t, dir, nil, "node", filepath.Join(modules, ".bin/openapi-typescript"), absolute(t, description), "--output",
		"generated/schema.d.ts")
	testkit.Must(t, os.Symlink(modules, filepath.Join(dir, "node_modules")))
	for _, name := range []string{"package.json", "tsconfig.json"} {
		content, err := os.ReadFile(filepath.Join(clientTools, name))
		testkit.Must(t, err)
		testkit.Must(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	runIn(t, dir, nil, "node", filepath.Join(modules, ".bin/tsc"), "--project", dir)
	return []string{"node", "out/client.js"}
}
