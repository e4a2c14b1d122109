//go:build deploy

// Package outside_test tests what ships with the tools of those who use it or run it, as they would: the image and the
// files of compose, the manifests for Kubernetes, the Debian package with its units, the alerts and the dashboard, the
// proxies' configurations, the commands of the manual, the release, certificates from an authority, a cluster of
// ClickHouse. With the tag nightly also clients that are generated from the API's description, and Lighthouse.
//
// The tests install these tools by the machine's package clients, in the versions that testdata lists. Some need root,
// to make copies of the machine.
package outside_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"linkstream/deploy/test/launch"
	"linkstream/deploy/tools/engines/enginetest"
	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema/testkit"
)

// engines are the real engines that the tests share.
var engines enginetest.Engines

// parallelTests is the default of the flag -parallel. The tests that run in parallel wait most of the time: for faults
// to last, for certificates to expire, for programs.
const parallelTests = "4"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", parallelTests); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(launch.Of(withShards{engines.Of(m)}),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"), // never ends
		// ends up to ten seconds after the server
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

func logger(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

// python returns an interpreter with the packages that the tests need.
func python(t *testing.T) (interpreter string) {
	t.Helper()
	interpreter, err := testengines.PythonPackages(t.Context(), logger(t), "testdata/requirements.txt")
	testkit.Must(t, err)
	return interpreter
}

// run runs a program to its end, which must be a success, and returns what it prints to stdout, without space around
// it.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	return runIn(t, ".", nil, name, args...)
}

// runIn is run in a folder, with more variables.
func runIn(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	return strings.TrimSpace(output(t, cmd))
}

// output runs a command to its end, which must be a success, and returns what it prints to stdout.
func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%q: %v\n%s%s", cmd.Args, err, stdout.String(), stderr.String())
	}
	return stdout.String()
}

// shortHost is the host of short links.
const shortHost = "sho.example.com"

// visit asks an edge, a base URL, for a short link.
func visit(t *testing.T, edge, path string) (status int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, edge+path, nil)
	testkit.Must(t, err)
	req.Host = shortHost
	res, err := http.DefaultTransport.RoundTrip(req)
	testkit.Must(t, err)
	res.Body.Close()
	return res.StatusCode
}

// callAPI sends a request with a token to an API, a base URL.
func callAPI(t *testing.T, api, token, method, path, body string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, api+path, strings.NewReader(body))
	testkit.Must(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	testkit.Must(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	testkit.Must(t, err)
	return res.StatusCode, string(text)
}

// copySource copies the files of the module, without what belongs to git or was built, to a folder of the test.
func copySource(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "another", "folder")
	files := runIn(t, launch.Root(), nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	for name := range strings.SplitSeq(strings.TrimRight(files, "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(launch.Root(), name))
		if errors.Is(err, fs.ErrNotExist) { // removed and not committed
			continue
		}
		testkit.Must(t, err)
		info, err := os.Stat(filepath.Join(launch.Root(), name))
		testkit.Must(t, err)
		testkit.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		testkit.Must(t, os.WriteFile(filepath.Join(dir, name), content, info.Mode().Perm()))
	}
	return dir
}

// relay connects clients of ln to what dial returns, until the test ends.
func relay(t *testing.T, ln net.Listener, dial func() (net.Conn, error)) {
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	serve := func(client net.Conn) {
		defer client.Close()
		defer context.AfterFunc(ctx, func() { client.Close() })()
		server, err := dial()
		if err != nil {
			return
		}
		defer server.Close()
		defer context.AfterFunc(ctx, func() { server.Close() })()
		running.Go(func() { pass(server, client) })
		pass(client, server)
	}
	running.Go(func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			running.Go(func() { serve(client) })
		}
	})
	t.Cleanup(func() {
		ln.Close()
		cancel()
		running.Wait()
	})
}

// pass copies what from sends, and its end, to to.
func pass(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.(*net.TCPConn).CloseWrite()
}
