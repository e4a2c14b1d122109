//go:build deploy

package outside_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// testReleasedClients installs the clients of a release in a folder, and runs a program with each on the built service.
func testReleasedClients(t *testing.T, folder string) {
	s := startClientService(t)
	s.click(t, "clicked", "")
	for name, install := range map[string]func(t *testing.T, folder, dir string) (command, env []string){
		"ts": installTypeScript, "py": installPython,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			testkit.Must(t, os.CopyFS(dir, os.DirFS("testdata/release/client")))
			command, env := install(t, folder, dir)
			api := newBusyAPI(t, s.api)
			alias, day := "released-"+name, time.Now().UTC().Format(time.DateOnly)
			out := runIn(t, dir, append(env, "API_URL="+api.url, "API_TOKEN="+clientToken, "API_ALIAS="+alias, "DAY="+day),
				command[0], command[1:]...)
			var said map[string]any
			testkit.Must(t, json.Unmarshal([]byte(out), &said))
			testkit.Equal(t, "what the client says", said, map[string]any{"hash": alias, "title": "Edited",
				"fields": []any{"long_url"}, "status": 422.0, "unknown": "not_found", "people": 1.0, "hours": 24.0,
				"listed": 1.0, "svg": true, "left": 0.0, "waits": []any{1.0}})
			if keys := api.keys; len(keys) != 3 || keys[0] == "" || keys[0] != keys[1] || keys[1] == keys[2] {
				t.Errorf("the keys of two calls, the first of which is repeated: %q", keys)
			}
		})
	}
}

// busyAPI stands in front of the API and answers the first POST with 503 and Retry-After.
type busyAPI struct {
	url  string
	keys []string // of all POSTs, which come one after the other
}

func newBusyAPI(t *testing.T, api string) *busyAPI {
	t.Helper()
	b := &busyAPI{}
	target, err := url.Parse(api)
	testkit.Must(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			if b.keys = append(b.keys, r.Header.Get("Idempotency-Key")); len(b.keys) == 1 {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
		}
		r.Host = target.Host
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}

// installTypeScript installs the package as npm does, and compiles the program against its types.
func installTypeScript(t *testing.T, folder, dir string) (command, env []string) {
	into := filepath.Join(dir, "node_modules/linkstream")
	testkit.Must(t, os.MkdirAll(into, 0o700))
	run(t, "tar", "-xzf", filepath.Join(folder, "linkstream-"+version+".tgz"), "-C", into, "--strip-components", "1")
	for _, name := range []string{"package.json", "tsconfig.json"} {
		content, err := os.ReadFile(filepath.Join(clientTools, name))
		testkit.Must(t, err)
		testkit.Must(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	runIn(t, dir, nil, "node", filepath.Join(npm(t), ".bin/tsc"), "--project", dir)
	return []string{"node", "out/client.js"}, nil
}

// installPython installs the package by pip.
func installPython(t *testing.T, folder, dir string) (command, env []string) {
	into := filepath.Join(dir, "packages")
	run(t, python(t), "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", into,
		filepath.Join(folder, wheel))
	return []string{python(t), "client.py"}, []string{"PYTHONPATH=" + into}
}
