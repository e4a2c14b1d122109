// Package e2e_test tests the built programs from outside: it runs them as processes and checks over the network what
// the documents promise, without regard to the code. Without a build tag it tests standalone, which needs nothing
// else. With the tag engines it tests the three services on real engines, and the dashboard in a browser. startSystem
// starts the system under test: it is defined once for each.
//
// Tests spend most of their time waiting for other processes, so more of them run in parallel than there are CPUs.
package e2e_test

import (
	"crypto/rand"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"linkstream/deploy/test/launch"
	"linkstream/schema/testkit"
)

// parallelTests is the default of the flag -parallel.
const parallelTests = "5"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", parallelTests); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(launch.Of(suite(m)))
}

// system is an installation of linkstream. It keeps its addresses and its data over restarts.
type system struct {
	edge, api string // base URLs
	data      string // folder

	// The first account, which the environment presets.
	email, password, token string

	programs []*program // the first one has the admin commands
	env      []string   // variables of all programs
}

// emptySystem returns a system without programs.
func emptySystem(t *testing.T) *system {
	t.Helper()
	return &system{
		edge: "http://" + testkit.FreeAddress(t), api: "http://" + testkit.FreeAddress(t),
		data:  filepath.Join(t.TempDir(), "data"),
		email: "owner@example.com", password: rand.Text(), token: "ls_" + rand.Text() + rand.Text(),
	}
}

// preset returns the variables of the first account.
func (s *system) preset() []string {
	return []string{"LINKSTREAM_BOOTSTRAP_EMAIL=" + s.email, "LINKSTREAM_BOOTSTRAP_PASSWORD=" + s.password,
		"LINKSTREAM_BOOTSTRAP_TOKEN=" + s.token}
}

// A visitor whose link is not in memory gets 503 if the look-up takes longer than this. On a busy machine it may take
// longer than the default, with a store that answers. Tests of stores that do not answer keep the default.
const (
	patientLookups = "LINKSTREAM_EDGE_LOOKUP_TIMEOUT=1m"
	defaultLookups = "LINKSTREAM_EDGE_LOOKUP_TIMEOUT=1s"
)

// newStandalone returns a system on embedded engines that is not started yet. settings are variables.
func newStandalone(t *testing.T, settings ...string) *system {
	t.Helper()
	s := emptySystem(t)
	ops := "http://" + testkit.FreeAddress(t)
	s.env = slices.Concat(s.preset(), []string{patientLookups, "LINKSTREAM_EDGE_URL=" + s.edge}, settings)
	s.programs = []*program{{name: "standalone", base: s.edge, ops: ops, env: s.env,
		args: []string{"-data", s.data, "-edge.listen", address(s.edge), "-api.listen", address(s.api),
			"-ops.listen", address(ops)}}}
	return s
}

// startStandalone starts a new system on embedded engines.
func startStandalone(t *testing.T, settings ...string) *system {
	t.Helper()
	s := newStandalone(t, settings...)
	s.start(t)
	return s
}

// program returns the first program of a service: "edge", "api" or "ingest". The field of that name is its base URL.
func (s *system) program(service string) *program {
	for _, p := range s.programs {
		if p.name == service {
			return p
		}
	}
	return nil
}

// all returns all programs of a service. Standalone is one of each.
func (s *system) all(service string) (all []*program) {
	for _, p := range s.programs {
		if p.name == service || p.name == "standalone" {
			all = append(all, p)
		}
	}
	return all
}

// start starts all programs and returns when all are ready.
func (s *system) start(t *testing.T) {
	t.Helper()
	for _, p := range s.programs {
		p.launch(t)
	}
	s.awaitReady(t)
}

// awaitReady returns when all programs are ready.
func (s *system) awaitReady(t *testing.T) {
	t.Helper()
	for _, p := range s.programs {
		p.awaitReady(t)
	}
}

// stop ends all programs by SIGTERM, see end.
func (s *system) stop(t *testing.T) {
	t.Helper()
	s.end(t, syscall.SIGTERM)
}

// end ends one program after the other by a signal and requires that each ends in time and with exit code 0.
func (s *system) end(t *testing.T, sig syscall.Signal) {
	t.Helper()
	for _, p := range s.programs {
		p.end(t, sig)
	}
}

// admin runs an admin command, requires that it succeeds, and returns its output without the line end.
func (s *system) admin(t *testing.T, args ...string) string {
	t.Helper()
	out, errOut, code := s.programs[0].command(t, args...)
	if code != 0 {
		t.Fatalf("%q: exit code %d, want 0\nstdout: %s\nstderr: %s", args, code, out, errOut)
	}
	return strings.TrimSuffix(out, "\n")
}

// address returns the host:port of a base URL.
func address(base string) string { return strings.TrimPrefix(base, "http://") }

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	testkit.Must(t, os.WriteFile(path, []byte(content), 0o600))
}
