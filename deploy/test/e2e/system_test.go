// Package e2e_test tests the built programs from outside: it runs them as processes and checks over the network what the
// documents promise, without regard to the code. What clients are promised is checked on two kinds of system: everything
// in one process on embedded engines, and the three services on real engines.
//
// Tests spend most of their time waiting for other processes, so more of them run in parallel than there are CPUs.
package e2e_test

import (
	"crypto/rand"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"linkstream/deploy/test/launch"
	"linkstream/deploy/tools/engines/enginetest"
	"linkstream/schema/clickhouse/clickhousetest"
	"linkstream/schema/testkit"
)

// engines are the real engines that all systems share, except clusters.
var engines enginetest.Engines

// parallelTests is the default of the flag -parallel.
const parallelTests = "5"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", parallelTests); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(launch.Of(suite{engines.Of(m)}))
}

// suite runs the tests and then ends the browser.
type suite struct{ tests launch.Runner }

func (s suite) Run() int {
	code := s.tests.Run()
	endChromium()
	return code
}

// TestEngines starts the shared engines, before the parallel tests.
func TestEngines(t *testing.T) {
	for name, address := range map[string]func(testing.TB) string{
		"Postgres": engines.Postgres, "Kafka": engines.Kafka, "ClickHouse": engines.ClickHouse,
	} {
		if address(t) == "" {
			t.Errorf("%s has no address", name)
		}
	}
}

// system is an installation of linkstream. It keeps its addresses and its data over restarts.
type system struct {
	edge, api string // base URLs
	data      string // folder

	// The first account, which the environment presets.
	email, password, token string

	programs []*program // the first one has the admin commands
	env      []string   // variables of all nodes on real engines
}

// onBothKinds runs a test on a new system of each kind, both at the same time. settings are variables.
func onBothKinds(t *testing.T, test func(t *testing.T, s *system), settings ...string) {
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		test(t, startSystem(t, settings...))
	})
	t.Run("engines", func(t *testing.T) {
		t.Parallel()
		s := newServices(t, sharedEngines(t), settings...)
		s.start(t)
		test(t, s)
	})
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

// A visitor whose link is not in memory gets 503 if the look-up takes longer than this. On a busy machine it may take longer than the
// default, with a store that answers. Tests of stores that do not answer keep the default.
const (
	patientLookups = "LINKSTREAM_EDGE_LOOKUP_TIMEOUT=1m"
	defaultLookups = "LINKSTREAM_EDGE_LOOKUP_TIMEOUT=1s"
)

// newSystem returns a system on embedded engines that is not started yet. settings are variables.
func newSystem(t *testing.T, settings ...string) *system {
	t.Helper()
	s := emptySystem(t)
	ops := "http://" + testkit.FreeAddress(t)
	s.programs = []*program{{name: "standalone", base: s.edge, ops: ops,
		args: []string{"-data", s.data, "-edge.listen", address(s.edge), "-api.listen", address(s.api),
			"-ops.listen", address(ops), "-edge.url", s.edge},
		env: slices.Concat(s.preset(), []string{patientLookups}, settings)}}
	return s
}

// startSystem starts a new system on embedded engines.
func startSystem(t *testing.T, settings ...string) *system {
	t.Helper()
	s := newSystem(t, settings...)
	s.start(t)
	return s
}

// sharedEngines returns the variables with the addresses of the shared engines and of new databases on them. The one of ClickHouse has
// its tables: its migrations take half a second of CPU time.
func sharedEngines(t *testing.T) []string {
	t.Helper()
	env := emptyEngines(t)
	testkit.Must(t, clickhousetest.Migrate(t.Context(), setting(env, "LINKSTREAM_CLICKHOUSE_DSN")))
	return env
}

// emptyEngines is sharedEngines, but the programs migrate both databases.
func emptyEngines(t *testing.T) []string {
	t.Helper()
	return engineSettings(engines.Postgres(t), engines.Kafka(t), engines.ClickHouse(t))
}

func engineSettings(postgres, kafka, clickhouse string) []string {
	return []string{"LINKSTREAM_POSTGRES_DSN=" + postgres, "LINKSTREAM_KAFKA_BROKERS=" + kafka,
		"LINKSTREAM_CLICKHOUSE_DSN=" + clickhouse}
}

// newServices returns a system of one api, one ingest and one edge that are not started yet. engines are the variables
// with the engines' addresses, and settings are more variables.
func newServices(t *testing.T, engines []string, settings ...string) *system {
	t.Helper()
	s := emptySystem(t)
	topics := enginetest.Name()
	s.env = slices.Concat(engines, s.preset(), []string{patientLookups, "LINKSTREAM_EDGE_URL=" + s.edge,
		"LINKSTREAM_KAFKA_CLICKS_TOPIC=" + topics + ".clicks", "LINKSTREAM_KAFKA_DEAD_TOPIC=" + topics + ".dead",
		"LINKSTREAM_KAFKA_CHANGES_TOPIC=" + topics + ".changes", "LINKSTREAM_KAFKA_GROUP=" + topics}, settings)
	s.add(t, "api", s.api)
	s.add(t, "ingest", "")
	s.add(t, "edge", s.edge)
	return s
}

// setting returns the value of a variable of a system of services, "" if it is not set.
func (s *system) setting(name string) string { return setting(s.env, name) }

func setting(env []string, name string) string {
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// add adds a program that serves the public at base, or not if that is "", to a system of services, without starting it. Each edge has its own spool.
func (s *system) add(t *testing.T, service, base string) *program {
	t.Helper()
	p := &program{name: service, base: base, ops: "http://" + testkit.FreeAddress(t)}
	p.env = append(slices.Clone(s.env), "LINKSTREAM_OPS_LISTEN="+address(p.ops),
		"LINKSTREAM_SPOOL_DIR="+filepath.Join(s.data, fmt.Sprintf("spool-%d", len(s.programs))))
	if base != "" {
		p.env = append(p.env, "LINKSTREAM_"+strings.ToUpper(service)+"_LISTEN="+address(base))
	}
	s.programs = append(s.programs, p)
	return p
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

// startAnother adds one more program of a service and returns it, with its base URL, when it is ready.
func (s *system) startAnother(t *testing.T, service string) (p *program, base string) {
	t.Helper()
	base = "http://" + testkit.FreeAddress(t)
	p = s.add(t, service, base)
	p.start(t)
	return p, base
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
